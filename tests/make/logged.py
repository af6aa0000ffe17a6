"""Changes of the public log that no operation makes."""

from django.db import connection, transaction

from muniment.registry.publishing import publisher
from muniment.store import public_log
from muniment.store.published_document import PublishedDocument, PublishedEntry


def logged_again(key: str, body: bytes, *, times: int = 1) -> None:
    """Let the feed and the log have *times* updates of a company to *body*, and leave the document as it is."""
    document = PublishedDocument(kind="company", key=key, position=1, item=b"", body=body, updated_at="", name="")
    with transaction.atomic(), connection.cursor() as cursor:
        publisher.lock()
        log, edition = public_log.Log(connection.connection), publisher.head()[0]
        for number in range(edition + 1, edition + 1 + times):
            log.add(
                PublishedEntry(sequence=number, kind="company", key=key, change="updated", at="", document=document)
            )
            cursor.execute(
                "INSERT INTO published_change VALUES (%s, 'company', %s, 'updated', '', NULL)", [number, key]
            )
        log.write()
        on_sqlite = connection.vendor == "sqlite"
        table, column = ("published_meta", "edition") if on_sqlite else ("published_edition", "value")
        cursor.execute(f"UPDATE {table} SET {column} = %s", [edition + times])
