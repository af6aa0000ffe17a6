"""A small instance with data in every table, its fingerprint, and how to empty it."""

import shutil
from typing import Any

from django.db import connection, transaction

from make import documents, registry
from muniment import config
from muniment.accounts.models import Account
from muniment.accounts.tokens import create_token
from muniment.backup import rows, snapshot
from muniment.credits.operations import grant
from muniment.documents.models import Document
from muniment.documents.records import storage
from muniment.kernel.actor import COMMAND, SCOPES
from muniment.registry.exchange.importer import import_registry
from muniment.registry.publishing import publisher
from muniment.store.database.snapshots import snapshot as seen
from services.product import DEMO


def filled() -> list[Document]:
    """Fill the instance and return its documents."""
    import_registry(DEMO)
    owner = registry.owner("keeper@harbour.example")
    company = registry.published(owner, name="Harbour Board", description="Keeps the «harbour» — 港.")
    registry.draft(owner, name="Not Yet Known")
    found = [documents.uploaded(owner, company.slug, f"Minutes {n}.".encode() * n * 50) for n in (1, 2, 3)]
    grant(COMMAND, "keeper@harbour.example", 7, key="spring")
    keeper = Account.objects.get(email="keeper@harbour.example")
    create_token(COMMAND, "a token", permitted=SCOPES, days=30, account=keeper)
    return found


def counted(*, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return count and digest of every table, of the published documents and of the blobs."""
    with seen():
        counts: dict[str, Any] = {
            name: rows.count("default", table).count()
            for name, table in rows.tables(rows.applied("default")).items()
            if name not in without
        }
        counts["public answers"] = snapshot.published_tally("default").count()
        counts["edition"] = publisher.head()[0], publisher.head()[2]
    counts["blobs"] = {blob.key: b"".join(storage().stream(blob.key)) for blob in storage().blobs("documents")}
    return counts


def emptied() -> None:
    """Delete every row and every blob."""
    with transaction.atomic():
        publisher.clear(edition=0)
        for table in rows.tables(rows.applied("default")).values():
            rows.delete_all("default", table)
    without_blobs()


def without_blobs() -> None:
    shutil.rmtree(config.current().data / "blobs" / "documents", ignore_errors=True)


def everything() -> dict[str, str]:
    """Return every text in the database, by table."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            found[table] = "\n".join(
                value.decode("utf-8", "replace") if isinstance(value, bytes | memoryview) else str(value)
                for row in cursor.fetchall()
                for value in (bytes(each) if isinstance(each, memoryview) else each for each in row)
            )
    return found


def tables_with(*texts: str) -> list[str]:
    """Return the tables that contain one of *texts*."""
    return sorted(name for name, content in everything().items() if any(text in content for text in texts))
