"""Operations of migrations that Django does not have."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import AlterField


class WithoutIndex(AlterField):
    """
    Remove the index of a foreign key, because another index begins with its column.

    Django would copy the whole table on SQLite, and on PostgreSQL leave the second index that a key of text has.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        """Drop the indexes that are of this column alone, but for those that the model names."""
        del to_state
        options = from_state.apps.get_model(app_label, self.model_name)._meta  # noqa: SLF001 - Django's public name
        column = options.get_field(self.name).column
        named = {index.name for index in options.indexes}
        connection = schema_editor.connection
        with connection.cursor() as cursor:
            constraints = connection.introspection.get_constraints(cursor, options.db_table)
        for name, found in constraints.items():
            is_of_column = found["columns"] == [column] and found["index"] and not found["unique"]
            if is_of_column and name not in named:
                schema_editor.execute(schema_editor.sql_delete_index % {"name": schema_editor.quote_name(name)})
