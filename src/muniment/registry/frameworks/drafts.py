"""Drafts of specifications: what a reviewer has edited section by section and not published yet."""

from typing import Final

import msgspec
from django.db import transaction

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry.company.access import require_reviewer
from muniment.registry.models import Framework, SpecificationDraft

MAX_BYTES: Final = 2_000_000
_TASK: Final = "author frameworks"


def find_draft(actor: Actor, framework: Framework) -> SpecificationDraft | None:
    """Return the actor's draft; raise Forbidden if the actor is not a reviewer."""
    require_reviewer(actor, _TASK)
    return SpecificationDraft.objects.filter(framework=framework, account=actor.account_id).first()


def save_draft(
    actor: Actor, framework: Framework, document: JSONObject, *, version: int, revision: int
) -> SpecificationDraft:
    """
    Store the actor's draft.

    Args:
        version: the published version that it was made from.
        revision: that of the draft which was edited; 0 if there was none.

    Raises:
        Forbidden: the actor is not a reviewer.
        BadRequest: the document is too large.
        Conflict: the draft was changed since, in another tab.
    """
    require_reviewer(actor, _TASK)
    if len(msgspec.json.encode(document)) > MAX_BYTES:
        raise BadRequest("The specification has more than 2 MB.", "Shorten its texts.")
    with transaction.atomic():
        kept = SpecificationDraft.objects.select_for_update().filter(framework=framework, account=actor.account_id)
        draft = kept.first()
        if (draft.revision if draft else 0) != revision:
            raise Conflict("Your draft was changed in another tab.", "Open the page again and repeat the last change.")
        if draft is None:
            draft = SpecificationDraft(framework=framework, account_id=actor.account_id, version=version, revision=0)
        draft.document, draft.revision, draft.changed_at = document, draft.revision + 1, now()
        draft.save()
    return draft


def discard_draft(actor: Actor, framework: Framework) -> None:
    """Delete the actor's draft; raise Forbidden if the actor is not a reviewer."""
    require_reviewer(actor, _TASK)
    SpecificationDraft.objects.filter(framework=framework, account=actor.account_id).delete()
