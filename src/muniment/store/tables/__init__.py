"""Public tables: the published documents as rows, which anyone may query in SQL."""

from typing import Final

FILE_NAME: Final = "tables.sqlite"
"""The file, beside that of the published documents."""
