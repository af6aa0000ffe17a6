"""
OAuth clients: dynamic registration and client metadata documents.

Source: RFC 7591; draft-ietf-oauth-client-id-metadata-document; decisions, section 4.
"""

import json
import unicodedata
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from muniment.accounts.operations import find_account, require_operator
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.texts import first_text_fault
from muniment.kernel.tokens import token_digest
from muniment.oauth import client_documents, redirects
from muniment.oauth.errors import Refusal, echo
from muniment.oauth.grants import end_grant
from muniment.oauth.models import AuthorizationCode, Client, Grant
from muniment.registry_toml import applied

GRANT_TYPES: Final = ("authorization_code", "refresh_token")
MAX_REDIRECTS: Final = 20
MAX_REDIRECT_CHARACTERS: Final = 4_000
"""Maximum characters of the redirect addresses of a client, all together."""
MAX_UNUSED: Final = 5_000
"""Clients that registered themselves and have no connection; beyond it, those that were added first make room."""
MAX_NAME_CHARACTERS: Final = 100
DOCUMENT_KEPT: Final = timedelta(hours=1)
UNUSED_KEPT: Final = timedelta(days=1)
_PRODUCT: Final = "muniment"
_LIKE_LATIN: Final = ("ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "GREEK")
_BOASTS: Final = ("official", "verified", "trusted")


def register_client(
    metadata: JSONMapping, *, before_new: Callable[[], object] = lambda: None
) -> tuple[Client, JSONObject]:
    """
    Register a public client, and return it with the registration response, which has the effective values.

    An app that registers again with the same values is the same client, so that all users of a hosted app share one
    row. Unknown members of the metadata are ignored. Raise a Refusal: invalid_redirect_uri or invalid_client_metadata.

    Args:
        before_new: called before a client is added; it refuses what is over a limit.

    Source: RFC 7591, sections 2 and 3.2.1. A client may receive other values than it requested, and instances of a
    client may receive the same identifier.
    """
    name, home_url, addresses = _read(metadata, "invalid_client_metadata")
    if "authorization_code" not in _texts(metadata, "grant_types", GRANT_TYPES):
        raise Refusal("invalid_client_metadata", "grant_types must include authorization_code.")
    if "code" not in _texts(metadata, "response_types", ("code",)):
        raise Refusal("invalid_client_metadata", "response_types must include code.")
    values = {"name": name, "home_url": home_url, "redirect_uris": addresses}
    identifier = f"mun_client_{token_digest(json.dumps(values, sort_keys=True))[:32]}"
    client = Client.objects.filter(identifier=identifier).first()
    if client is None:
        before_new()
        _make_room()
        client, _ = Client.objects.get_or_create(
            identifier=identifier, defaults={**values, "kind": Client.Kind.REGISTERED}
        )
    else:
        _keep_longer(client)
    answer: JSONObject = {
        "client_id": client.identifier,
        "client_id_issued_at": int(client.created_at.timestamp()),
        "redirect_uris": addresses,
        "grant_types": list(GRANT_TYPES),
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    displayed = {"client_name": name, "client_uri": home_url}
    return client, answer | {member: value for member, value in displayed.items() if value}


def _keep_longer(client: Client) -> None:
    """Note, at most once an hour, that the app registered again, so that it is not reaped before it is used."""
    if now() - (client.fetched_at or client.created_at) > DOCUMENT_KEPT:
        Client.objects.filter(pk=client.pk).update(fetched_at=now())


def _make_room() -> None:
    """
    If too many clients have no connection, delete those that were added first; a tenth more, to have time until then.

    Refusing new ones would let those who fill the table keep every other app out. When an app registered last does not
    count: registering again is free, and would keep the rows of a flood.
    """
    if Client.objects.filter(kind=Client.Kind.REGISTERED).count() < MAX_UNUSED:
        return
    with transaction.atomic():
        unused = _unused().filter(kind=Client.Kind.REGISTERED)
        excess = unused.count() - MAX_UNUSED
        if excess >= 0:
            first = unused.order_by("created_at", "pk").values_list("pk", flat=True)
            _unused().filter(pk__in=list(first[: excess + 1 + MAX_UNUSED // 10])).delete()


def find_client(identifier: str, *, fetch_for: int | None) -> Client | None:
    """
    Find a client by its identifier, and fetch its metadata document if the stored one is an hour old.

    Over the limit of fetches, the stored one is used, so that exhausting the limit keeps no known app out. Raise a
    Refusal, invalid_client, if the document cannot be fetched or is invalid.

    Args:
        fetch_for: the account for which a document may be fetched; None fetches none.
    """
    if len(identifier) > redirects.MAX_CHARACTERS or first_text_fault(identifier):
        return None
    client = Client.objects.filter(identifier=identifier).first()
    if not client_documents.is_document_address(identifier) or fetch_for is None:
        return client
    if client is not None and client.fetched_at and now() - client.fetched_at < DOCUMENT_KEPT:
        return client
    try:
        document = client_documents.fetch(identifier, fetch_for)
    except Refusal as refusal:
        if client is not None and refusal.error == "temporarily_unavailable":
            return client
        raise
    return _keep(identifier, document)


def require_client(identifier: str) -> None:
    """
    Raise a Refusal, invalid_client, if there is no such client, so that the app registers again.

    A client with a metadata document needs no registration; its tokens are unknown then, which is another error.

    Source: RFC 6749, section 5.2.
    """
    if not client_documents.is_document_address(identifier) and find_client(identifier, fetch_for=None) is None:
        raise Refusal("invalid_client", "Unknown client_id. The app must register again.")


def _keep(identifier: str, document: JSONMapping) -> Client:
    if document.get("client_id") != identifier:
        raise Refusal("invalid_client", "The client's metadata document has a client_id other than its own URL.")
    try:
        name, home_url, addresses = _read(document, "invalid_client")
    except Refusal as refusal:
        raise Refusal("invalid_client", f"The client's metadata document: {refusal.description}") from None
    if not name:
        raise Refusal("invalid_client", "The client's metadata document has no client_name.")
    values = {"name": name, "home_url": home_url, "redirect_uris": addresses, "fetched_at": now()}
    client, _ = Client.objects.update_or_create(
        identifier=identifier, defaults=values, create_defaults={**values, "kind": Client.Kind.DOCUMENT}
    )
    return client


def reap_clients() -> int:
    """Delete clients without a connection within a day, and those whose last connection was deleted."""
    with transaction.atomic():
        since = now() - UNUSED_KEPT
        old = _unused().filter(created_at__lt=since).filter(Q(fetched_at=None) | Q(fetched_at__lt=since))
        return old.delete()[1].get("oauth.Client", 0)


def _unused() -> QuerySet[Client]:
    waiting = AuthorizationCode.objects.filter(client=OuterRef("pk"), expires_at__gt=now())
    return Client.objects.exclude(Exists(Grant.objects.filter(client=OuterRef("pk")))).exclude(Exists(waiting))


def redirect_of(client: Client, asked: str) -> str:
    """
    Return the verified redirect address; show a Refusal, never redirect it (RFC 6749, section 4.1.2.1).

    An address that was registered when it was still allowed is refused.
    """
    if not asked and len(client.redirect_uris) == 1:
        return redirects.check(str(client.redirect_uris[0]))
    if not asked:
        raise Refusal("invalid_request", "redirect_uri is missing, and the client has registered more than one.")
    if any(redirects.matches(asked, registered) for registered in client.redirect_uris):
        return redirects.check(asked)
    raise Refusal("invalid_request", f"The redirect_uri {echo(asked)} is not registered for this client.")


def _read(metadata: JSONMapping, error: Any) -> tuple[str, str, list[str]]:
    if fault := first_text_fault(dict(metadata)):
        raise Refusal(error, f"{echo(fault[0]) or 'A member'} {fault[1]}.")
    addresses = _texts(metadata, "redirect_uris", ())
    if not addresses:
        raise Refusal("invalid_redirect_uri", "redirect_uris is missing.")
    if len(addresses) > MAX_REDIRECTS:
        raise Refusal("invalid_redirect_uri", f"redirect_uris has more than {MAX_REDIRECTS} entries.")
    if sum(len(address) for address in addresses) > MAX_REDIRECT_CHARACTERS:
        raise Refusal("invalid_redirect_uri", f"redirect_uris has more than {MAX_REDIRECT_CHARACTERS} characters.")
    for address in addresses:
        redirects.check(address)
    home = metadata.get("client_uri") or ""
    if not isinstance(home, str) or len(home) > redirects.MAX_CHARACTERS or not home.startswith("https://"):
        home = ""  # displayed, so only links that are safe to follow are kept
    return _name(metadata.get("client_name"), error), home, list(dict.fromkeys(addresses))


def _texts(metadata: JSONMapping, member: str, default: tuple[str, ...]) -> list[str]:
    value = metadata.get(member)
    if value is None:
        return list(default)
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        error: Any = "invalid_redirect_uri" if member == "redirect_uris" else "invalid_client_metadata"
        raise Refusal(error, f"{member} is not a list of strings.")
    return value


def _name(value: object, error: Any) -> str:
    """Validate a client's name: it is displayed, so it must not imitate or vouch for another name."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or len(value) > MAX_NAME_CHARACTERS:
        raise Refusal(error, f"client_name must be a string of at most {MAX_NAME_CHARACTERS} characters.")
    name = " ".join(value.split())
    if not name.isprintable():
        raise Refusal(error, "client_name has invisible characters.")
    if any(_mixes_alphabets(word) for word in name.split()):
        raise Refusal(error, "client_name mixes alphabets within a word, which can imitate another name.")
    folded_name = _fold(name)
    for own_name in (_PRODUCT, applied.registry_name()):
        folded_own_name = _fold(own_name)
        if folded_own_name and folded_name.startswith(folded_own_name):
            raise Refusal(error, f"client_name begins with {echo(own_name)}, the name of this registry.")
    for boast in _BOASTS:
        if boast in folded_name:
            raise Refusal(error, f"client_name contains {boast}, which is not allowed.")
    return name


def _fold(name: str) -> str:
    """Return the letters and digits of *name* alone, without case and accents, to compare names that look alike."""
    return "".join(c for c in unicodedata.normalize("NFKD", name).casefold() if c.isalnum())


def _mixes_alphabets(word: str) -> bool:
    """Return whether *word* mixes Latin letters with look-alike letters of another alphabet."""
    letters = (c for c in unicodedata.normalize("NFKD", word) if c.isalpha())
    alphabets = {unicodedata.name(c, "").partition(" ")[0] for c in letters}
    return "LATIN" in alphabets and not alphabets.isdisjoint(_LIKE_LATIN)


def home_of(client: Client) -> str:
    """Return the host that published the client's document, or "" for a self-registered client."""
    if client.kind != Client.Kind.DOCUMENT:
        return ""
    return urlsplit(client.identifier).hostname or ""


def disconnect_all(actor: Actor, email: str) -> int:
    """
    Disconnect every app of the account *email* within a second, on an operator's decision; return how many.

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
