"""
Hide former names, show them again, and remove them for good.

A hidden name is nowhere in public; the history keeps it. Nothing of a removed name is kept but a digest, which an
import and a restore respect. Each operation raises NotFound for a listing that is unknown or not the actor's, and for
a name that it has not had.
"""

from django.db import transaction

from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.jobs.queue import enqueue
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Forbidden, NotFound
from muniment.registry import history
from muniment.registry.company.access import owned, require_reviewer
from muniment.registry.company.listings import publish_company
from muniment.registry.models import Company, UnlistedBy
from muniment.registry.names import former
from muniment.registry.people import suppression
from muniment.registry.people.erasing import ERASURE_JOB, write_suppressions
from muniment.registry.publishing.documents import public_former_names
from muniment.registry.publishing.publisher import AffectedRows
from muniment.registry.publishing.redaction import overwrite_deleted, purge_search_index, retire_exports


def list_former_names(actor: Actor, slug: str) -> list[JSONObject]:
    """Return all former names of a listing, each with the side that hides it, if one does."""
    return list(owned(actor, slug).former_names or ())


def hide_former_name(actor: Actor, slug: str, name: str) -> Company:
    """Take a former name of a listing out of everything public."""
    with transaction.atomic():
        company, entry = _find(actor, slug, name)
        if former.HIDDEN not in entry or actor.decides:
            side = UnlistedBy.REVIEWER if actor.decides else UnlistedBy.OWNER
            _write(actor, company, former.marked(company.former_names, name, side), "former name hidden")
        return company


def show_former_name(actor: Actor, slug: str, name: str) -> Company:
    """
    Show a hidden former name again.

    Raises:
        Forbidden: a reviewer hid it.
    """
    with transaction.atomic():
        company, entry = _find(actor, slug, name)
        if entry.get(former.HIDDEN) == UnlistedBy.REVIEWER and not actor.decides:
            raise Forbidden("A reviewer hid this name.", "Ask the operator of this registry.")
        _write(actor, company, former.marked(company.former_names, name, ""), "former name shown")
        return company


def remove_former_name(actor: Actor, slug: str, name: str) -> list[str]:
    """
    Remove a former name and every trace of it in the history; it does not come back by an import or a restore.

    Returns:
        Folders of backups in which the suppression list could not be written.

    Raises:
        Forbidden: the actor is not a reviewer.
    """
    require_reviewer(actor, "remove former names")
    with transaction.atomic():
        company, entry = _find(actor, slug, name)
        overwrite_deleted()
        suppression.suppress_former_name(slug, entry["name"])
        former.remove_traces(company, entry["name"])
        _write(actor, company, former.without(company.former_names, name), "former name removed", is_told=False)
        record(Event.FORMER_NAME_REMOVED, actor=actor, subject=f"companies/{slug}")
        retire_exports()
        purge_search_index()
        enqueue(ERASURE_JOB)
    return write_suppressions()


def _find(actor: Actor, slug: str, name: str) -> tuple[Company, JSONObject]:
    company = owned(actor, slug, lock=True)
    entry = former.find(company.former_names, name)
    if entry is None:
        raise NotFound(
            Phrase("{slug!r} has no such former name.", slug=slug), "Its former names are on its page at /manage."
        )
    return company, entry


def _write(actor: Actor, company: Company, names: former.Stored, action: str, *, is_told: bool = True) -> None:
    """Store former names with their history, and publish them; *is_told*: the history has them."""
    before: JSONObject = {}
    after: JSONObject = {}
    names_before, names_after = public_former_names(company.former_names), public_former_names(names)
    if is_told and names_before != names_after:
        before["formerNames"] = names_before
        after["formerNames"] = names_after
    company.former_names = names
    company.version += 1
    company.updated_at = now()
    company.save(update_fields=["former_names", "version", "updated_at"])
    history.entry(actor, action, before=before, after=after, company=company).save()
    publish_company(company, AffectedRows(), changed={"formerNames"})
