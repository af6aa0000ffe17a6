"""An operator's decision to disconnect every app of an account."""

from django.db import transaction

from muniment.accounts.operations import find_account, require_operator
from muniment.kernel.actor import Actor
from muniment.oauth.grants import end_grant
from muniment.oauth.models import Grant


def disconnect_all(actor: Actor, email: str) -> int:
    """
    Disconnect every app of the account *email* within a second; return how many.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: there is no such account.
    """
    require_operator(actor)
    with transaction.atomic():
        account = find_account(email)
        rows = Grant.objects.select_related("client").select_for_update(of=("self",))
        connected = list(rows.filter(account=account, revoked_at=None))
        for grant in connected:
            end_grant(grant, "disconnected by an operator", actor)
    return len(connected)
