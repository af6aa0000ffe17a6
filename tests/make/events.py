"""Security events of an account, and the jobs that mail them."""

from muniment.accounts.models import Account, SecurityEvent


def events_of(account: Account | int) -> list[str]:
    """Return the names of an account's events, oldest first, without the one of its creation by the tests."""
    rows = SecurityEvent.objects.filter(account=account).exclude(event="account_created", via="command").order_by("pk")
    return list(rows.values_list("event", flat=True))


def audited() -> list[SecurityEvent]:
    """Return the audit log, oldest first, without the accounts that tests made."""
    return list(SecurityEvent.objects.filter(is_audited=True).exclude(event="account_created").order_by("pk"))
