"""The check of the ledger of credits: every balance equals its transfers and holds."""

from typing import Final

from muniment.credits.operations import check_ledger
from muniment.scrub.checks import RESTORE, Check, Damage, Slice

NAME: Final = "credit ledger"
_REMEDY: Final = f"compare the entries with muniment credits and with a backup; {RESTORE}"


def _look(after: str, limit: int, mend: bool) -> Slice:  # noqa: ARG001, FBT001 - the signature of a check
    damages = [Damage(check=NAME, subject="ledger", says=fault, remedy=_REMEDY) for fault in check_ledger()]
    return Slice(1, damages, None)


CHECK: Final = Check(
    name=NAME, fine="every balance equals its transfers, and the total is zero", count=lambda: 1, look=_look
)
