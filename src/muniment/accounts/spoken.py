"""The language of an account: the one that it last chose or signed in with, in which it gets mail."""

from contextlib import AbstractContextManager

from muniment.accounts.models import Account
from muniment.languages.offered import default
from muniment.languages.speaking import known, speaking


def remember(account: Account, code: str) -> None:
    """Store the language of an account, if it changed."""
    if account.language != code:
        account.language = code
        account.save(update_fields=["language"])


def in_language_of(account: Account | None) -> AbstractContextManager[None]:
    """Make texts for *account* in its language; in the default language if it has none that is offered."""
    return speaking(known(account.language) if account is not None and account.language else default())


def in_language_at(email: str) -> AbstractContextManager[None]:
    """Make texts for the account with this address in its language."""
    return in_language_of(Account.objects.filter(email=email.strip().lower()).first())
