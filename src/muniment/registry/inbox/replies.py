"""Saved replies: texts for notes that the registry's reviewers share."""

from typing import Final

from django.db import IntegrityError, transaction

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Conflict, NotFound
from muniment.kernel.texts import text_fault
from muniment.registry.company.access import require_reviewer
from muniment.registry.company.changes import BadFields
from muniment.registry.models import SavedReply
from muniment.schema.validation import Fault

MAX_TITLE: Final = 80
MAX_TEXT: Final = 5_000
MAX_REPLIES: Final = 100
_TASK: Final = "use saved replies"


def list_replies(actor: Actor) -> list[SavedReply]:
    """Return the saved replies by title; raise Forbidden if the actor is not a reviewer."""
    require_reviewer(actor, _TASK)
    return list(SavedReply.objects.select_related("account").order_by("title", "pk"))


def get_reply(actor: Actor, number: int) -> SavedReply:
    """
    Return a saved reply.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: there is no such reply.
    """
    require_reviewer(actor, _TASK)
    found = SavedReply.objects.filter(pk=number).first()
    if found is None:
        raise NotFound("This saved reply doesn't exist.", "All saved replies are at /review/replies.")
    return found


def save_reply(actor: Actor, title: str, text: str, *, number: int | None = None) -> SavedReply:
    """
    Create a saved reply, or change one.

    Args:
        number: of the reply to change.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: there is no such reply.
        BadFields: title or text is empty or too long, or the title is taken.
        Conflict: there are too many.
    """
    require_reviewer(actor, _TASK)
    values = {"title": title.strip(), "text": text.strip()}
    faults = [*_faults("title", values["title"], MAX_TITLE), *_faults("text", values["text"], MAX_TEXT)]
    if faults:
        raise BadFields(faults, "A saved reply has a title and a text.")
    reply = get_reply(actor, number) if number is not None else SavedReply()
    if number is None and SavedReply.objects.count() >= MAX_REPLIES:
        raise Conflict(Phrase("There are {limit} saved replies already.", limit=MAX_REPLIES), "Delete one first.")
    reply.title, reply.text = values["title"], values["text"]
    reply.account_id, reply.updated_at = actor.account_id, now()
    try:
        with transaction.atomic():
            reply.save()
    except IntegrityError:
        raise BadFields([Fault("title", "is taken")], "Choose another title.") from None
    return reply


def delete_reply(actor: Actor, number: int) -> None:
    """Delete a saved reply; raise Forbidden or NotFound as `get_reply` does."""
    get_reply(actor, number).delete()


def with_reply(actor: Actor, note: str, number: int | None) -> str:
    """Return a note that begins with a saved reply; the note alone without a number."""
    if number is None:
        return note
    text = get_reply(actor, number).text
    return f"{text}\n\n{note.strip()}" if note.strip() else text


def _faults(name: str, value: str, limit: int) -> list[Fault]:
    if not value:
        return [Fault(name, "is empty")]
    if len(value) > limit:
        return [Fault(name, Phrase("has {count:,} characters; the limit is {limit:,}", count=len(value), limit=limit))]
    fault = text_fault(value)
    return [Fault(name, fault)] if fault else []
