"""
Mail about listings and searches for people without an account: ask for it, confirm, end it.

Nothing is mailed to an address but what its owner confirmed: a request sends one message with a link, and is forgotten
after two days. What the page answers never tells whether an address is known. Links are signed; those that end a
subscription work for as long as it lasts, also after the secret key was rotated.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from allauth.account.models import EmailAddress
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.db import transaction
from django.db.models import Count, F, QuerySet, Value
from django.db.models.functions import Concat
from django.utils.translation import gettext

from muniment import config
from muniment.accounts.keys import kept
from muniment.accounts.models import Account
from muniment.accounts.operations import require_operator
from muniment.accounts.personal_data import ArchiveEntry
from muniment.accounts.security import origin
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, LimitReached, NotFound, TooMany
from muniment.kernel.texts import line_fault
from muniment.kernel.wire import timestamp
from muniment.languages.speaking import language
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of
from muniment.registry_toml import applied
from muniment.searches import news
from muniment.searches.models import Subscriber, Subscription
from muniment.searches.saved_searches import LISTS, MAX_QUERY_CHARACTERS

REQUESTS_OF_A_CLIENT: Final = 20
"""In an hour; links to the list of subscriptions count too."""
REQUESTS_IN_ALL: Final = 500
"""In an hour. It is small beside the codes for signing in, so that a flood of requests delays none of them long."""
MAILS_A_DAY: Final = 3
"""Messages that visitors cause to one address in a day."""
MAX_UNCONFIRMED: Final = 5_000
"""Requests that wait; those that were made first make room, because a limit could be held full from few addresses."""
MAX_OF_AN_ADDRESS: Final = 20
UNCONFIRMED_FOR: Final = timedelta(hours=48)
UNCONFIRMED_HOURS: Final = 49
"""Hours of the clock in which a request counts."""
MINE_FOR: Final = timedelta(days=7)
"""How long the link to the list of an address works."""
REFUSALS: Final = 3
"""So often in a row the mail server refuses an address for good before its subscriptions end."""
PAUSES: Final = {Subscription.Pace.DAILY: timedelta(days=1), Subscription.Pace.WEEKLY: timedelta(days=7)}
REQUESTED: Final = "updates_request"
"""The kind of the messages that visitors cause."""
SECRET: Final = "visitor mail"  # noqa: S105 - the name of a secret
"""The kept secret that signs the links that end a subscription."""
_CONFIRM: Final = "muniment.searches.confirm"
_MINE: Final = "muniment.searches.mine"
_END: Final = "muniment.searches.end"
_EMAIL: Final = EmailValidator()
MAX_EMAIL_CHARACTERS: Final = 254


def is_offered() -> bool:
    """Return whether visitors can ask for mail: the operator can turn it off, and a mirror stores nothing."""
    settings = config.current()
    return bool(settings.visitor_mail) and not settings.mirrored


# ---------------------------------------------------------------- asking and confirming


class WantedUpdates(NamedTuple):
    """
    What a visitor asks to be told of.

    Args:
        topic: ``company`` or ``person`` with a slug as *key*, or a list with the query string of its page.
    """

    topic: str
    key: str
    pace: str = Subscription.Pace.DAILY


def title_of(wanted: WantedUpdates) -> str:
    """
    Return the name of the listing, or what the search is for.

    Raises:
        NotFound: no such listing is public.
        BadRequest: no such topic, or the search is invalid or too long.
    """
    if wanted.topic in news.LISTINGS:
        name = news.name_of_listing(wanted.topic, wanted.key)
        if name is None:
            raise NotFound("This listing doesn't exist.", "Search all companies and people.")
        return name
    if wanted.topic not in LISTS:
        raise BadRequest("There are no updates of this.", "Ask for them on the page of a listing or of a search.")
    if len(wanted.key) > MAX_QUERY_CHARACTERS or not (wanted.key.isascii() and wanted.key.isprintable()):
        raise BadRequest("The search is too long for updates.", "Remove some of its filters.")
    return news.registry.search_of(wanted.topic, wanted.key).title


def request_updates(email: str, wanted: WantedUpdates) -> None:
    """
    Mail a link to *email* that begins to send it updates.

    Nothing that this returns or raises depends on whether the address is known.

    Raises:
        NotFound: updates are turned off, or no such listing is public.
        BadRequest: the address, the topic or the pace is invalid.
        TooMany: this client, its network, or all visitors together have asked too often.
    """
    require_offered()
    address = _address(email)
    if wanted.pace not in Subscription.Pace.values:
        raise BadRequest("There are daily and weekly updates.", "Choose one of them.")
    title = title_of(wanted)
    if wanted.topic not in news.LISTINGS:
        wanted = wanted._replace(key=news.registry.search_of(wanted.topic, wanted.key).query)
    _take_request()
    with transaction.atomic():
        subscriber = _locked(address)
        confirmed = list(subscriber.subscriptions.exclude(confirmed_at=None))
        has_it = any((each.topic, each.key) == (wanted.topic, wanted.key) for each in confirmed)
        if not has_it and len(confirmed) < MAX_OF_AN_ADDRESS:
            _keep_request(subscriber, wanted, title)
        elif _may_mail(address):
            _answer_known(subscriber, title, has_it=has_it)


def _keep_request(subscriber: Subscriber, wanted: WantedUpdates, title: str) -> None:
    """Store an unconfirmed subscription and mail its link, unless the address was mailed enough for today."""
    if not _may_mail(subscriber.email):
        return
    values = {"title": title, "pace": wanted.pace, "requested_at": now()}
    row, _ = Subscription.objects.update_or_create(
        subscriber=subscriber, topic=wanted.topic, key=wanted.key, defaults=values
    )
    _make_room()
    path = f"/updates/confirm/{signing.dumps(row.pk, salt=_CONFIRM)}"
    with in_language_of(subscriber):
        shown = {"registry": applied.registry_name(), "title": outgoing.without_links(title)}
        asked = gettext("Someone, probably you, asked %(registry)s to send updates of “%(title)s” to this address.")
        unless = gettext(
            "If you didn't ask for this, ignore this message. Nothing else is sent without your confirmation, and your"
            " address is deleted after 48 hours."
        )
        text = f"{asked % shown}\n\n{places.link(gettext('Confirm the updates'), path)}\n\n{unless}\n"
        outgoing.send(subscriber.email, gettext("Confirm your updates: %(title)s") % shown, text, kind=REQUESTED)


def _make_room() -> None:
    """Delete the oldest requests above the limit."""
    unconfirmed = _unconfirmed()
    above = unconfirmed.count() - MAX_UNCONFIRMED
    if above > 0:
        oldest = list(unconfirmed.order_by("requested_at", "pk").values_list("pk", flat=True)[:above])
        Subscription.objects.filter(pk__in=oldest).delete()


def _answer_known(subscriber: Subscriber, title: str, *, has_it: bool) -> None:
    """Mail a subscriber why a request changes nothing: the page must not."""
    with in_language_of(subscriber):
        shown = {"title": outgoing.without_links(title), "limit": MAX_OF_AN_ADDRESS}
        said = gettext("You get updates of “%(title)s” already.")
        if not has_it:
            said = gettext("You have %(limit)d subscriptions. End one of them to get updates of “%(title)s”.")
        _mail_list(subscriber, gettext("Your updates: %(title)s") % shown, said % shown)


def _mail_list(subscriber: Subscriber, subject: str, said: str) -> None:
    """Mail a link to the list of subscriptions, in the language of the moment."""
    link = places.link(gettext("See your subscriptions"), mine_path(subscriber))
    until = gettext("The link works for 7 days. If you didn't ask for this message, ignore it.")
    outgoing.send(subscriber.email, subject, f"{said}\n\n{link}\n\n{until}\n", kind=REQUESTED)


def request_list(email: str) -> None:
    """
    Mail the link to the list of its subscriptions to *email*, if it has any.

    Raises:
        BadRequest: the address is invalid.
        TooMany: as :func:`request_updates`.
    """
    address = _address(email)
    _take_request()
    with transaction.atomic():
        subscriber = Subscriber.objects.filter(email=address, subscriptions__confirmed_at__isnull=False).first()
        if subscriber is None or not _may_mail(address):
            return
        with in_language_of(subscriber):
            said = gettext("Here you see and end all subscriptions of this address.")
            _mail_list(subscriber, gettext("Your subscriptions"), said)


def _address(email: str) -> str:
    """Return an address in lower case; raise BadRequest if it is none."""
    address = email.strip().lower()
    try:
        _EMAIL(address)
    except ValidationError:
        address = ""
    if not address or len(address) > MAX_EMAIL_CHARACTERS or line_fault(address) or address.endswith(outgoing.NO_MAIL):
        raise BadRequest("This is not an email address.", "Enter one such as name@example.org.")
    return address


def _take_request() -> None:
    """Count a request of this client, of its site and of all visitors; raise TooMany above a limit."""
    at = now()
    wait_s = 3_600 - at.minute * 60 - at.second
    hint = Phrase("Try again in {minutes} minutes.", minutes=wait_s // 60 + 1)
    is_within_own = origin.take_of_client("updates-of-client", REQUESTS_OF_A_CLIENT) and origin.take_share(
        "updates", in_all=MAX_UNCONFIRMED, least=REQUESTS_OF_A_CLIENT, hours=UNCONFIRMED_HOURS
    )
    if not is_within_own:
        raise TooMany("Too many updates were asked for from your network this hour.", hint, retry_after_s=wait_s)
    if not origin.take("updates-of-all", "", REQUESTS_IN_ALL):
        raise TooMany("This registry can't send more confirmations this hour.", hint, retry_after_s=wait_s)


def _may_mail(address: str) -> bool:
    """Count one more message that visitors cause to an address; return False if it got enough today."""
    return origin.take("updates-to-address", address, MAILS_A_DAY, days=True)


def _locked(address: str) -> Subscriber:
    found, _ = Subscriber.objects.select_for_update().get_or_create(email=address, defaults={"language": language()})
    return found


def _unconfirmed() -> QuerySet[Subscription]:
    return Subscription.objects.filter(confirmed_at=None)


def require_offered() -> None:
    """Raise NotFound if the registry sends no updates."""
    if not is_offered():
        raise NotFound("This registry sends no updates by email.", "Follow a listing or a search by its feed.")


def _link_gone() -> NotFound:
    return NotFound("This link doesn't work any more.", "Ask for updates again on the page of a listing or a search.")


def find_request(token: str) -> Subscription:
    """Return the subscription that a mailed link confirms; raise NotFound if it is invalid, expired or ended."""
    try:
        key = signing.loads(token, salt=_CONFIRM, max_age=UNCONFIRMED_FOR)
    except signing.BadSignature:
        raise _link_gone() from None
    row = Subscription.objects.select_related("subscriber").filter(pk=key).first()
    if row is None:
        raise _link_gone()
    return row


def confirm_updates(token: str) -> Subscription:
    """
    Begin to send updates; a subscription that is confirmed already stays as it is.

    Raises:
        NotFound: the link is invalid or expired, the subscription was ended, or updates are turned off.
        LimitReached: the address has the maximum number of subscriptions.
    """
    require_offered()
    found = find_request(token)
    place = news.registry.reader().place
    with transaction.atomic():
        subscriber = Subscriber.objects.select_for_update().filter(pk=found.subscriber_id).first()
        row = Subscription.objects.select_for_update().filter(pk=found.pk).first()
        if subscriber is None or row is None:
            raise _link_gone()
        if row.confirmed_at is not None:
            return row
        if subscriber.subscriptions.exclude(confirmed_at=None).count() >= MAX_OF_AN_ADDRESS:
            raise LimitReached(
                Phrase("You have {limit} subscriptions.", limit=MAX_OF_AN_ADDRESS), "End one that you no longer need."
            )
        row.confirmed_at = now()
        row.next_at = row.confirmed_at + PAUSES[Subscription.Pace(row.pace)]
        row.sequence, row.epoch = place
        row.save(update_fields=["confirmed_at", "next_at", "sequence", "epoch"])
        subscriber.language, subscriber.refusals = language(), 0
        subscriber.save(update_fields=["language", "refusals"])
    return row


# ---------------------------------------------------------------- ending


def _end_signer() -> signing.Signer:
    """Return what signs links that end a subscription: mail programs keep messages for years."""
    first, *others = kept.secrets_for(SECRET)
    return signing.Signer(key=first, fallback_keys=[*others], salt=_END)


def end_path(row: Subscription) -> str:
    """Return the page that ends a subscription; a POST to it ends it at once (RFC 8058)."""
    return f"/updates/end/{_end_signer().sign_object(row.pk)}"


def find_to_end(token: str) -> Subscription | None:
    """Return the subscription that a link ends, None if it has ended; raise NotFound if the link is invalid."""
    try:
        key = _end_signer().unsign_object(token)
    except signing.BadSignature:
        raise NotFound(
            "This link doesn't work.", "Ask for a link to your subscriptions at /updates, and end them there."
        ) from None
    return Subscription.objects.select_related("subscriber").filter(pk=key).first()


def end_updates(token: str) -> None:
    """End the subscription of a link, in any state; raise NotFound if the link is invalid."""
    row = find_to_end(token)
    if row is not None:
        end_rows([row])


def mine_path(subscriber: Subscriber) -> str:
    """Return the page with all subscriptions of an address."""
    return f"/updates/mine/{signing.dumps(subscriber.pk, salt=_MINE)}"


def find_subscriber(token: str) -> Subscriber | None:
    """Return whose subscriptions a link lists, None if there is none left; raise NotFound if it is invalid or old."""
    try:
        key = signing.loads(token, salt=_MINE, max_age=MINE_FOR)
    except signing.BadSignature:
        raise NotFound("This link doesn't work any more.", "Ask for a new one at /updates.") from None
    return Subscriber.objects.filter(pk=key).first()


def list_mine(token: str) -> list[Subscription]:
    """Return the confirmed subscriptions of an address, the oldest first; raise NotFound if the link is invalid."""
    subscriber = find_subscriber(token)
    if subscriber is None:
        return []
    return list(subscriber.subscriptions.exclude(confirmed_at=None).order_by("confirmed_at", "pk"))


def end_mine(token: str, subscription_id: str = "") -> int:
    """
    End one subscription of an address, or all without an id, and return how many ended.

    Raises:
        NotFound: the link is invalid or old, or the subscription is not one of the address.
    """
    subscriber = find_subscriber(token)
    if subscriber is None:
        return 0
    rows = list(
        subscriber.subscriptions.filter(pk=subscription_id) if subscription_id else subscriber.subscriptions.all()
    )
    if subscription_id and not rows:
        raise NotFound("This subscription has ended.", "Your other subscriptions are on the page before.")
    end_rows(rows)
    return len(rows)


def end_rows(rows: Sequence[Subscription]) -> None:
    """Delete subscriptions, and the addresses that have no other one."""
    with transaction.atomic():
        Subscription.objects.filter(pk__in=[row.pk for row in rows]).delete()
        _forget_idle({row.subscriber_id for row in rows})


def _forget_idle(subscribers: Collection[str] | None = None) -> int:
    """Delete the addresses without a subscription, of all or of some, and return how many there were."""
    idle = Subscriber.objects.filter(subscriptions=None)
    if subscribers is not None:
        idle = idle.filter(pk__in=subscribers)
    return idle.delete()[0]


def prune() -> dict[str, int]:
    """Forget requests that were not confirmed within two days, and addresses without a subscription."""
    with transaction.atomic():
        requests, _ = _unconfirmed().filter(requested_at__lt=now() - UNCONFIRMED_FOR).delete()
        return {"requests": requests, "addresses": _forget_idle()}


def note_outcome(address: str, is_accepted: bool) -> None:  # noqa: FBT001 - the signature that delivery calls
    """Count how often in a row a digest was refused for good; after the third time, the address is forgotten."""
    subscriber = Subscriber.objects.select_for_update().filter(email=address).first()
    if subscriber is None or (is_accepted and not subscriber.refusals):
        return
    subscriber.refusals = 0 if is_accepted else subscriber.refusals + 1
    if subscriber.refusals >= REFUSALS:
        subscriber.delete()
    else:
        subscriber.save(update_fields=["refusals"])


def forget_person(kind: str, slug: str) -> None:
    """
    Remove an erased person from subscriptions, in the caller's transaction.

    The receivers are told, with the next digests, that a profile is gone: without its name.
    """
    about = Subscription.objects.filter(topic=kind, key=slug)
    about.update(key=Concat(Value("erased:"), F("id")), title="", next_at=now())


# ---------------------------------------------------------------- operators and accounts


class SubscriptionCounts(NamedTuple):
    """
    How many subscriptions there are.

    Args:
        by_topic: confirmed ones.
        unconfirmed: requests that wait for their receiver.
        addresses: those with a confirmed subscription.
    """

    by_topic: dict[str, int]
    unconfirmed: int
    addresses: int


def count_subscriptions(actor: Actor) -> SubscriptionCounts:
    """Count subscriptions; raise Forbidden if the actor is not an operator."""
    require_operator(actor)
    confirmed = Subscription.objects.exclude(confirmed_at=None)
    by_topic = dict(confirmed.values_list("topic").annotate(count=Count("pk")).order_by("topic"))
    addresses = confirmed.values("subscriber").distinct().count()
    return SubscriptionCounts(by_topic, _unconfirmed().count(), addresses)


def list_subscriptions(actor: Actor, email: str) -> list[Subscription]:
    """Return all subscriptions of an address, the oldest first; raise Forbidden if the actor is not an operator."""
    require_operator(actor)
    return list(Subscription.objects.filter(subscriber__email=email.strip().lower()).order_by("requested_at", "pk"))


def end_subscriptions(actor: Actor, email: str) -> int:
    """
    Delete an address with its subscriptions and the messages to it, and return how many subscriptions it had.

    Raises:
        Forbidden: the actor is not an operator.
    """
    require_operator(actor)
    with transaction.atomic():
        count = _forget_addresses([email.strip().lower()])
        # Without the address, which may be erased because its owner asked for it.
        record(Event.SUBSCRIPTIONS_ENDED, actor=actor, detail={"subscriptions": count})
    return count


def _forget_addresses(addresses: Sequence[str]) -> int:
    count = Subscription.objects.filter(subscriber__email__in=addresses).count()
    Subscriber.objects.filter(email__in=addresses).delete()
    for address in addresses:
        outgoing.forget(address)
    return count


def _addresses_of(account: Account) -> list[str]:
    """Return the addresses that belong to an account: its own, and those that it has confirmed."""
    others = EmailAddress.objects.filter(user=account, verified=True).values_list("email", flat=True)
    return sorted({account.email.lower(), *(each.lower() for each in others)})


def export_subscriptions(account: Account) -> Iterator[ArchiveEntry]:
    """Yield the subscriptions of the account's addresses."""
    rows = Subscription.objects.filter(subscriber__email__in=_addresses_of(account)).select_related("subscriber")
    yield ArchiveEntry("email-subscriptions.json", [_exported(row) for row in rows.order_by("requested_at", "pk")])


def _exported(row: Subscription) -> JSONObject:
    return {
        "email": row.subscriber.email,
        "topic": row.topic,
        "key": row.key,
        "title": row.title,
        "pace": row.pace,
        "language": row.subscriber.language,
        "requestedAt": timestamp(row.requested_at),
        "confirmedAt": timestamp(row.confirmed_at) if row.confirmed_at else None,
    }


def delete_subscriptions(account: Account) -> None:
    """Delete the subscriptions of the account's addresses."""
    _forget_addresses(_addresses_of(account))
