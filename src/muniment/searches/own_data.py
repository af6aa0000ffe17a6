"""Saved searches, as part of an account's personal data."""

from collections.abc import Iterator

from muniment.accounts.models import Account
from muniment.accounts.personal_data import ArchiveEntry, Part
from muniment.kernel.wire import timestamp
from muniment.searches.models import SavedSearch


def _export(account: Account) -> Iterator[ArchiveEntry]:
    mine = SavedSearch.objects.filter(account=account).order_by("pk")
    found = [
        {"name": each.name, "list": each.list, "query": each.query, "savedAt": timestamp(each.saved_at)}
        for each in mine
    ]
    yield ArchiveEntry("saved-searches.json", found)


def _delete(account: Account) -> None:
    SavedSearch.objects.filter(account=account).delete()


PART = Part(name="searches", export=_export, delete=_delete)
