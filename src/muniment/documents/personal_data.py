"""
Documents as personal data: in the archive and the deletion of an account, and among the texts that name a person.

Documents of a listing with other owners stay with it.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from django.db import transaction

from muniment.accounts.models import Account
from muniment.accounts.personal_data import ArchiveEntry, Part
from muniment.documents.downloading import remove_archives
from muniment.documents.models import Document, Page, Pin
from muniment.documents.records import fault_of_file, storage, to_wire
from muniment.documents.uploads import remove_blob
from muniment.registry.own_data import abandoned_drafts
from muniment.registry.people.erasing import Searched


def _export(account: Account) -> Iterator[ArchiveEntry]:
    rows = list(Document.objects.filter(account=account).select_related("company").order_by("created_at", "pk"))
    yield ArchiveEntry("documents.json", [to_wire(row) for row in rows])
    for row in rows:
        if not row.blob_key:
            continue
        fault = fault_of_file(row.blob_key, row.size_bytes, row.sha256)
        if fault:
            yield ArchiveEntry(f"documents/{row.pk}-missing.json", {"id": row.pk, "left out": str(fault)})
        else:
            name = row.filename.replace("/", "_").replace("\\", "_")
            yield ArchiveEntry(f"documents/{row.pk}-{name}", storage().stream(row.blob_key))


def _delete(account: Account) -> None:
    rows = Document.objects.filter(company__in=abandoned_drafts(account))
    keys = [key for key in rows.values_list("blob_key", flat=True) if key]
    Pin.objects.filter(document__in=rows).delete()
    rows.delete()
    Document.objects.filter(account=account).update(token_hash="")
    number = account.pk
    for key in keys:
        transaction.on_commit(partial(remove_blob, key))
    transaction.on_commit(lambda: remove_archives(number))


PART = Part(name="documents", export=_export, delete=_delete)


def _document(row: Document) -> tuple[str, str]:
    return f"{row.company.slug}: {row.filename}", f"/review/companies/{row.company.slug}"


SEARCHED: Final = (
    Searched(Document, "document", _document, ("company",)),
    Searched(Page, "text of a document", lambda row: _document(row.document), ("document", "document__company")),
)
