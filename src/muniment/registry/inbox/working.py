"""How a reviewer works: digest mail and keyboard shortcuts, each on unless turned off."""

from muniment.kernel.actor import Actor
from muniment.registry.company.access import require_account, require_reviewer
from muniment.registry.models import ReviewerSettings

_TASK = "have these settings"


def get_settings(actor: Actor) -> ReviewerSettings:
    """
    Return the settings of the actor.

    Raises:
        Forbidden: the actor is not a reviewer, or has no account.
    """
    require_reviewer(actor, _TASK)
    account_id = require_account(actor, "Settings belong to an account.")
    found = ReviewerSettings.objects.filter(account=account_id).first()
    return found or ReviewerSettings(account_id=account_id)


def change_settings(actor: Actor, *, digest: bool, shortcuts: bool) -> ReviewerSettings:
    """Change the settings of the actor; raise Forbidden as `get_settings` does."""
    account_id = get_settings(actor).account_id
    values = {"digest": digest, "shortcuts": shortcuts}
    return ReviewerSettings.objects.update_or_create(account_id=account_id, defaults=values)[0]
