"""The check of the SQLite database: its pages, its indexes and its search indexes."""

from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import connection, transaction

from muniment.scrub.checks import RESTORE, Check, Damage, Slice, checks, in_order
from muniment.scrub.instance import record_met, stored
from muniment.store.verifying import sqlite_file

NAME: Final = "database pages"
_COPY: Final = (
    "stop the server, make a backup with muniment backup, and restore it into a new data folder; if no backup can be"
    f" made, {RESTORE}"
)
_INDEXES: Final = "its indexes were made again from its rows"


def _file() -> Path | None:
    """Return the database file; None on PostgreSQL, which verifies its own pages."""
    return Path(settings.DATABASES["default"]["NAME"]) if connection.vendor == "sqlite" else None


def _count() -> int:
    file = _file()
    return len(sqlite_file.parts(file)) if file is not None else 0


def _look(after: str, limit: int, mend: bool) -> Slice:  # noqa: FBT001 - the signature of a check
    if (file := _file()) is None:
        return Slice(0, [], None)
    parts, last = in_order(sqlite_file.parts(file), after, max(1, limit // 50))
    damages = []
    for part in parts:
        if found := sqlite_file.faults(file, part):
            says = "; ".join(found[:3]) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")
            is_mended = mend and part != sqlite_file.WHOLE and _mended(file, part)
            damages.append(
                Damage(
                    check=NAME,
                    subject=part,
                    says=says,
                    remedy=_INDEXES if is_mended else _COPY,
                    is_mended=is_mended,
                )
            )
    return Slice(len(parts), damages, last)


def _mended(file: Path, part: str) -> bool:
    """Return whether the part is whole once its indexes are made again."""
    from django.db import DatabaseError

    try:
        with connection.wrap_database_errors, transaction.atomic():
            sqlite_file.rebuild_indexes(connection.connection, part)
    except DatabaseError:
        return False
    return not sqlite_file.faults(file, part)


def record_unreadable() -> None:
    """Remember that a read met damaged pages, until a scrub has examined the file."""
    says = "a read met damaged pages"
    record_met([Damage(check=NAME, subject="the database file", says=says, remedy=_COPY)])


def is_unreadable() -> bool:
    """Return whether damage of the file is known that no scrub has mended or found to be gone."""
    return any(damage.check == NAME for damage in stored().open(checks()))


CHECK: Final = Check(name=NAME, fine="every page, index and search index is whole", count=_count, look=_look)
