"""
The currency of the stored amounts, kept in the database: amounts are numbers, so another setting would relabel them.

The first start stores the setting. From then on, a process with another setting does not use the database, unless
nothing that can have an amount is stored yet.
"""

from django.db import transaction

from muniment import config
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.models import Company, InstanceCurrency
from muniment.registry.publishing.publisher import rebuild


class OtherCurrency(Exception):  # noqa: N818 - its message is for the operator
    """The setting names another currency than that of the stored amounts."""

    def __init__(self, stored: str, configured: str) -> None:
        super().__init__(
            f"The amounts of this instance are in {stored}, but MUNIMENT_CURRENCY is {configured}. Set"
            f" MUNIMENT_CURRENCY={stored}. If the amounts were meant in {configured} from the beginning, run"
            f" muniment currency {configured} once: it converts nothing."
        )


def stored_currency() -> str:
    """Return the currency of the stored amounts; empty before the first start of this version."""
    return InstanceCurrency.objects.values_list("code", flat=True).first() or ""


def settle() -> None:
    """
    Store the configured currency, if none is stored or nothing is stored that has amounts.

    Raises:
        OtherCurrency: the stored amounts are in another one.
    """
    configured, stored = config.current().currency, stored_currency()
    if stored == configured:
        return
    if stored and Company.objects.exists():
        raise OtherCurrency(stored, configured)
    _store(configured)


def relabel(code: str) -> None:
    """
    Declare that the stored amounts are, and always were, in *code*, and publish every document again.

    Raises:
        BadRequest: the settings name another currency.
    """
    configured = config.current().currency
    if code != configured:
        message = Phrase(
            "MUNIMENT_CURRENCY is {configured}, and every process must have the same.", configured=configured
        )
        raise BadRequest(
            message, Phrase("Stop all processes, set MUNIMENT_CURRENCY={code}, and run this again.", code=code)
        )
    _store(code)
    rebuild()


def _store(code: str) -> None:
    with transaction.atomic():
        InstanceCurrency.objects.exclude(code=code).delete()
        InstanceCurrency.objects.get_or_create(code=code)
