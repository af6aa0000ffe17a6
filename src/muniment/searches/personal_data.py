"""Saved searches and subscriptions, as part of an account's personal data."""

from collections.abc import Iterator

from muniment.accounts.models import Account
from muniment.accounts.personal_data import ArchiveEntry, Part
from muniment.searches import saved_searches, subscriptions


def _export(account: Account) -> Iterator[ArchiveEntry]:
    yield from saved_searches.export_searches(account)
    yield from subscriptions.export_subscriptions(account)


def _delete(account: Account) -> None:
    saved_searches.delete_searches(account)
    subscriptions.delete_subscriptions(account)


PART = Part(name="searches", export=_export, delete=_delete)
