"""
The review queue: items that wait, were sent back or decided, by kind, assignee, checks and words.

Assigning an item locks nothing: it informs the other reviewers. The decisions themselves prevent double decisions.
The number of queries does not depend on the length of the queue. Every operation raises Forbidden unless the actor is
a reviewer.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from django.db import transaction
from django.db.models import (
    CharField,
    Count,
    DateTimeField,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Concat

from muniment.accounts.models import Account
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.pagination import Page
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry.company.access import require_reviewer
from muniment.registry.models import (
    Company,
    DomainProof,
    ItemChecks,
    Ownership,
    PendingChange,
    Petition,
    State,
    Taking,
)

KINDS: Final = ("listing", "change", "claim", "profile", "suggestion")
STATES: Final = ("open", "returned", "decided")
"""Waiting for a reviewer, for the owner, or for none."""
ItemState = Literal["open", "returned", "decided"]
MAX_WORDS: Final = 200
_PAGES: Final = {"company": "companies", "change": "changes", "petition": "requests"}
_ORDER: Final = ("change", "company", "petition")
"""The kinds of rows, as they are ordered among items of the same time."""


ASSIGNED_FOR: Final = timedelta(hours=4)
TASK: Final = "see the review queue"


def list_reviewers(actor: Actor) -> list[Account]:
    """Return the accounts that items can be assigned to, by email address."""
    require_reviewer(actor, TASK)
    roles = [Account.Role.REVIEWER, Account.Role.OPERATOR]
    return list(Account.objects.filter(role__in=roles, is_active=True).order_by("email")[:200])


def assign(actor: Actor, subject: str, *, to: int | None = None) -> None:
    """
    Assign an item.

    Args:
        to: the account of a reviewer; by default the actor's.

    Raises:
        Forbidden: the actor is not a reviewer.
        BadRequest: the account is not of a reviewer.
        Conflict: the item is not open, or no longer.
    """
    require_reviewer(actor, TASK)
    account_id = to or actor.account_id
    if account_id is None:
        return  # on the command line
    if to is not None and to not in {each.pk for each in list_reviewers(actor)}:
        raise BadRequest("This account is not a reviewer's.", "Choose a reviewer.")
    if not is_open(subject):
        raise Conflict("This is no longer in the review queue.", "Choose another item.")
    with transaction.atomic():
        Taking.objects.update_or_create(subject=subject, defaults={"account_id": account_id, "at": now()})


def is_open(subject: str) -> bool:
    """Return whether an item waits for a reviewer."""
    kind, _, key = subject.partition(":")
    if kind == "company":
        return Company.objects.filter(state=State.SUBMITTED, slug=key).exists()
    model = _NUMBERED.get(kind)
    number = _number(key)
    if model is None or number is None:
        return False
    return bool(model.objects.filter(decision="", pk=number).exists())


_NUMBERED: Final[dict[str, Any]] = {"change": PendingChange, "petition": Petition}
"""The kinds of rows whose items are named by their keys."""


def _number(key: str) -> int | None:
    """Return the key of a row; None for other texts, and for a number that databases refuse."""
    if not key.isascii() or not key.isdigit() or len(key) >= 19:
        return None
    return int(key)


def unassign(actor: Actor, subject: str) -> None:
    """Unassign an item; raise Forbidden if the actor is not a reviewer."""
    require_reviewer(actor, TASK)
    Taking.objects.filter(subject=subject).delete()


def assignee(subject: str) -> str:
    """Return the account that *subject* is assigned to; empty if unassigned."""
    found = Taking.objects.filter(subject=subject, at__gt=now() - ASSIGNED_FOR).select_related("account").first()
    return str(found.account) if found else ""


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """
    The query for items.

    Args:
        kind: one of `KINDS`; empty for all.
        assignee: ``me``, ``none``, or the number of an account; empty for all.
        check: ``attention`` for any check that did not pass, ``passed``, or the name of one that did not pass.
        words: words to find in names, slugs and the submitter's email address.
    """

    kind: str = ""
    state: ItemState = "open"
    assignee: str = ""
    check: str = ""
    words: str = ""
    newest: bool = False


@dataclass(frozen=True, slots=True)
class QueueItem:
    """
    An item of the queue.

    Args:
        subject: identifies it: ``company:slug``, ``change:7``, ``petition:7``.
        version: the version of the listing, which a decision on it names.
        by: the email addresses of the owners, or of the requester.
        attention: the checks that did not pass; None while they were not made.
        decision: the decision on an item that is not open.
    """

    subject: str
    kind: str
    name: str
    since: datetime
    version: int | None = None
    fields: tuple[str, ...] = ()
    is_proven: bool = False
    by: str = ""
    decision: str = ""
    taken_by: str = ""
    taken_by_me: bool = False
    attention: tuple[str, ...] | None = None

    @property
    def address(self) -> str:
        return address_of(self.subject)


def address_of(subject: str) -> str:
    """Return the address of an item's page."""
    kind, _, key = subject.partition(":")
    return f"/review/{_PAGES[kind]}/{key}"


def count_queue(actor: Actor, found: InboxFilter | None = None) -> int:
    """Count the items that a filter finds, by default all that wait."""
    require_reviewer(actor, TASK)
    return _count(_parts(actor, found or InboxFilter()))


def count_kinds(actor: Actor, found: InboxFilter | None = None) -> dict[str, int]:
    """Count the items of each kind that a filter finds, whatever its kind; kinds without any are left out."""
    require_reviewer(actor, TASK)
    inbox_filter = replace(found or InboxFilter(), kind="")
    rows_by_kind = _parts(actor, inbox_filter)
    counts = {"listing": rows_by_kind["company"].count(), "change": rows_by_kind["change"].count()}
    of_kind = rows_by_kind["petition"].values("kind").annotate(count=Count("pk"))
    counts |= {row["kind"]: row["count"] for row in of_kind.values("kind", "count")}
    return {kind: counts[kind] for kind in KINDS if counts.get(kind)}


def list_queue(
    actor: Actor, found: InboxFilter | None = None, *, page: int = 1, page_size: int = 25
) -> Page[QueueItem]:
    """Return the items that a filter finds, by default all that wait, oldest first."""
    require_reviewer(actor, TASK)
    inbox_filter = found or InboxFilter()
    sign = "-" if inbox_filter.newest else ""
    rows_by_kind = _parts(actor, inbox_filter)
    rows = _union(rows_by_kind).order_by(f"{sign}since", f"{sign}of", f"{sign}pk")
    here = list(rows[(page - 1) * page_size : page * page_size])
    return Page(_described(actor, here), page, page_size, _count(rows_by_kind))


def next_item(actor: Actor, found: InboxFilter, subject: str) -> QueueItem | None:
    """
    Return the item behind *subject* in a filter's order, or else the first one.

    Without an assignee in the filter, items assigned to other reviewers are left out.
    """
    require_reviewer(actor, TASK)
    parts = _parts(actor, found)
    if not found.assignee:
        others = _fresh_takings().exclude(account=actor.account_id).values("subject")
        parts = {of: rows.exclude(subject__in=others) for of, rows in parts.items()}
    parts = {of: rows.exclude(subject=subject) for of, rows in parts.items()}
    sign = "-" if found.newest else ""
    order = (f"{sign}since", f"{sign}of", f"{sign}pk")
    ranges = [parts]
    place = _place(subject)
    if place:
        behind = {of: rows.filter(_behind(of, *place, newest=found.newest)) for of, rows in parts.items()}
        ranges = [behind, parts]
    for rows_by_kind in ranges:
        first = list(_union(rows_by_kind).order_by(*order)[:1])
        described = _described(actor, first)
        if described:
            return described[0]
    return None


def find_items(actor: Actor, subjects: list[str]) -> list[QueueItem]:
    """Return the open items among *subjects*, in the order of the queue."""
    require_reviewer(actor, TASK)
    parts = {of: rows.filter(subject__in=subjects) for of, rows in _parts(actor, InboxFilter()).items()}
    return _described(actor, list(_union(parts).order_by("since", "of", "pk")))


def _place(subject: str) -> tuple[str, int, datetime] | None:
    """Return the kind of row, the key and the time of an item, also of one that was just decided."""
    of, _, key = subject.partition(":")
    row: Any = None
    number = _number(key)
    if of == "company":
        row = Company.objects.filter(slug=key).values_list("pk", Coalesce("submitted_at", "updated_at")).first()
    elif of in _NUMBERED and number is not None:
        row = _NUMBERED[of].objects.filter(pk=number).values_list("pk", "asked_at").first()
    return (of, *row) if row else None


def _behind(of: str, place: str, key: int, since: datetime, *, newest: bool) -> Q:
    """Return the condition of the rows of one kind that come after an item in the order by time, kind and key."""
    side = "lt" if newest else "gt"
    later = Q(**{f"since__{side}": since})
    if of == place:
        return later | Q(since=since, **{f"pk__{side}": key})
    is_kind_after = _ORDER.index(of) > _ORDER.index(place)
    if newest:
        is_kind_after = not is_kind_after
    return later | Q(since=since) if is_kind_after else later


def _fresh_takings() -> QuerySet[Taking]:
    return Taking.objects.filter(at__gt=now() - ASSIGNED_FOR)


def _parts(actor: Actor, found: InboxFilter) -> dict[str, QuerySet[Any]]:
    """Return the rows of each kind that a filter finds, with their subject and the time that they are ordered by."""
    rows = _rows_in(found.state)
    if found.kind:
        if found.kind != "listing":
            rows["company"] = rows["company"].none()
        if found.kind != "change":
            rows["change"] = rows["change"].none()
        rows["petition"] = rows["petition"].filter(kind=found.kind)
    rows["company"] = rows["company"].annotate(subject=Concat(Value("company:"), "slug", output_field=TextField()))
    for of in ("change", "petition"):
        subject = Concat(Value(f"{of}:"), Cast("pk", TextField()), output_field=TextField())
        rows[of] = rows[of].annotate(subject=subject)
    for of, kind_rows in rows.items():
        matching = kind_rows.filter(_words(of, found.words)) if found.words else kind_rows
        rows[of] = _assigned(_checked(matching, found.check), actor, found)
    return rows


def _rows_in(state: ItemState) -> dict[str, QuerySet[Any]]:
    companies, changes, petitions = Company.objects.all(), PendingChange.objects.all(), Petition.objects.all()
    asked, decided = F("asked_at"), F("decided_at")
    if state == "open":
        return {
            "company": companies.filter(state=State.SUBMITTED).annotate(since=Coalesce("submitted_at", "updated_at")),
            "change": changes.filter(decision="").annotate(since=asked),
            "petition": petitions.filter(decision="").annotate(since=asked),
        }
    if state == "returned":
        return {
            "company": companies.filter(state=State.CHANGES_REQUESTED).annotate(since=F("updated_at")),
            "change": changes.none().annotate(since=asked),
            "petition": petitions.none().annotate(since=asked),
        }
    finished = companies.filter(submitted_at__isnull=False, state__in=[State.PUBLISHED, State.REJECTED])
    return {
        "company": finished.annotate(since=Coalesce("reviewed_at", "updated_at", output_field=DateTimeField())),
        "change": changes.filter(decision__in=["approved", "rejected"]).annotate(since=decided),
        "petition": petitions.exclude(decision="").annotate(since=decided),
    }


def _words(of: str, words: str) -> Q:
    text = words.strip()[:MAX_WORDS]
    if of == "company":
        owned = Ownership.objects.filter(company=OuterRef("pk"), account__email__icontains=text)
        return Q(name__icontains=text) | Q(slug__icontains=text) | Q(Exists(owned))
    columns = ["company__name", "company__slug", "account__email"]
    if of == "petition":  # it can be of a person
        columns += ["person__name", "person__slug"]
    contains = Q()
    for column in columns:
        contains |= Q(**{f"{column}__icontains": text})
    return contains


def _checked(rows: QuerySet[Any], check: str) -> QuerySet[Any]:
    made = ItemChecks.objects.values("subject")
    if not check:
        return rows
    if check == "passed":
        return rows.filter(subject__in=made.filter(attention=""))
    if check == "attention":
        return rows.filter(subject__in=made.exclude(attention=""))
    return rows.filter(subject__in=made.filter(attention__contains=f" {check} "))


def _assigned(rows: QuerySet[Any], actor: Actor, found: InboxFilter) -> QuerySet[Any]:
    taken = _fresh_takings().values("subject")  # read once for all rows, not once for each
    if not found.assignee:
        return rows
    if found.assignee == "none":
        return rows.exclude(subject__in=taken)
    account = actor.account_id if found.assignee == "me" else int(found.assignee)
    return rows.filter(subject__in=taken.filter(account=account))


def _count(parts: dict[str, QuerySet[Any]]) -> int:
    # Each by an index of its own; to count the union, every row of it would be made.
    return sum(rows.count() for rows in parts.values())


def _union(parts: dict[str, QuerySet[Any]]) -> QuerySet[Any, tuple[str, int, datetime]]:
    """Return the kind, the key and the time of all rows."""
    places = []
    for of, rows in parts.items():
        places.append(rows.annotate(of=Value(of, output_field=CharField())).values_list("of", "pk", "since"))
    first, *others = places
    everything: QuerySet[Any, tuple[str, int, datetime]] = first.union(*others, all=True)
    return everything


def _described(actor: Actor, here: list[tuple[str, int, datetime]]) -> list[QueueItem]:
    """Return the items of rows; one that was deleted in the meantime is left out."""
    descriptions = _descriptions(here)
    subjects = [description["subject"] for description in descriptions.values()]
    fresh = _fresh_takings().filter(subject__in=subjects).select_related("account")
    takings = {taking.subject: taking for taking in fresh}
    attention = dict(ItemChecks.objects.filter(subject__in=subjects).values_list("subject", "attention"))
    items = []
    for of, key, since in here:
        description = descriptions.get((of, key))
        if description is None:
            continue
        subject = description["subject"]
        taking = takings.get(subject)
        items.append(
            QueueItem(
                **description,
                since=since,
                taken_by=str(taking.account) if taking else "",
                taken_by_me=taking is not None and taking.account_id == actor.account_id,
                attention=tuple(attention[subject].split()) if subject in attention else None,
            )
        )
    return items


def _descriptions(here: list[tuple[str, int, datetime]]) -> dict[tuple[str, int], dict[str, Any]]:
    keys: dict[str, list[int]] = {"company": [], "change": [], "petition": []}
    for of, key, _ in here:
        keys[of].append(key)
    descriptions: dict[tuple[str, int], dict[str, Any]] = {}
    for company in Company.objects.filter(pk__in=keys["company"]).prefetch_related("owners"):
        descriptions["company", company.pk] = {
            "subject": f"company:{company.slug}",
            "kind": "listing",
            "name": company.name,
            "version": company.version,
            "by": ", ".join(str(owner) for owner in company.owners.all()),
            "decision": "" if company.state == State.SUBMITTED else company.state,
        }
    for change in PendingChange.objects.filter(pk__in=keys["change"]).select_related("company", "account"):
        descriptions["change", change.pk] = {
            "subject": f"change:{change.pk}",
            "kind": "change",
            "name": change.company.name,
            "by": str(change.account or ""),
            "fields": tuple(change.changes),
            "decision": change.decision,
        }
    petitions = list(Petition.objects.filter(pk__in=keys["petition"]).select_related("account", "company", "person"))
    proven = _proven(petitions)
    for petition in petitions:
        is_claim = petition.kind == Petition.RequestKind.CLAIM
        descriptions["petition", petition.pk] = {
            "subject": f"petition:{petition.pk}",
            "kind": petition.kind,
            "name": str(petition.company or petition.person),
            "by": str(petition.account),
            "fields": tuple(petition.changes),
            "decision": petition.decision,
            "is_proven": is_claim and (petition.company_id, petition.account_id) in proven,
        }
    return descriptions


def _proven(petitions: list[Petition]) -> set[tuple[int | None, int]]:
    claims = [petition for petition in petitions if petition.kind == Petition.RequestKind.CLAIM]
    if not claims:
        return set()
    proofs = DomainProof.objects.filter(
        company__in=[claim.company_id for claim in claims], state=DomainProof.ProofState.VERIFIED
    )
    return set(proofs.values_list("company_id", "account_id"))
