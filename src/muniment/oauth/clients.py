"""
Clients: how an app registers itself, or is known by its metadata document.

Source: RFC 7591; draft-ietf-oauth-client-id-metadata-document; decisions, section 4.
"""

import unicodedata
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import Exists, OuterRef

from muniment import config
from muniment.kernel.ids import now
from muniment.kernel.texts import first_text_fault
from muniment.kernel.tokens import random_text
from muniment.oauth import client_documents, redirects
from muniment.oauth.errors import Refusal, echo
from muniment.oauth.models import AuthorizationCode, Client, Grant

GRANT_TYPES: Final = ("authorization_code", "refresh_token")
MAX_REDIRECTS: Final = 20
MAX_NAME_CHARACTERS: Final = 100
DOCUMENT_KEPT: Final = timedelta(hours=1)
UNUSED_KEPT: Final = timedelta(days=1)
_PRODUCT: Final = "muniment"
_LIKE_LATIN: Final = ("ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "GREEK")
_BOASTS: Final = ("official", "verified", "trusted")


def register_client(metadata: Mapping[str, Any]) -> tuple[Client, dict[str, Any]]:
    """
    Register a public client from what it says of itself; members that mean nothing here are ignored.

    Returns:
        The client, and the registration as it is answered: what holds, whatever was asked.

    Raises:
        Refusal: invalid_redirect_uri or invalid_client_metadata.

    Source: RFC 7591, sections 2 and 3.2.1. A client may be given other values than it asked for.
    """
    name, home_url, addresses = _read(metadata, "invalid_client_metadata")
    if not set(_texts(metadata, "grant_types", GRANT_TYPES)) & {"authorization_code"}:
        raise Refusal("invalid_client_metadata", "grant_types must have authorization_code; no other one starts here.")
    if "code" not in _texts(metadata, "response_types", ("code",)):
        raise Refusal("invalid_client_metadata", "response_types must have code.")
    client = Client.objects.create(
        identifier=f"mun_client_{random_text(24)}",
        kind=Client.Kind.REGISTERED,
        name=name,
        home_url=home_url,
        redirect_uris=addresses,
    )
    answer: dict[str, Any] = {
        "client_id": client.identifier,
        "client_id_issued_at": int(client.created_at.timestamp()),
        "redirect_uris": addresses,
        "grant_types": list(GRANT_TYPES),
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    if name:
        answer["client_name"] = name
    if home_url:
        answer["client_uri"] = home_url
    return client, answer


def find_client(identifier: str, *, may_fetch: bool) -> Client | None:
    """
    Find a client by what it calls itself.

    Args:
        may_fetch: read the metadata document of a client that is known by one, when ours is older than an hour.

    Raises:
        Refusal: invalid_client, the document cannot be had or says something else.
    """
    if len(identifier) > redirects.MAX_CHARACTERS or first_text_fault(identifier):
        return None
    client = Client.objects.filter(identifier=identifier).first()
    if not client_documents.is_document_address(identifier) or not may_fetch:
        return client
    if client is not None and client.fetched_at and now() - client.fetched_at < DOCUMENT_KEPT:
        return client
    document = client_documents.fetch(identifier)
    return _keep(identifier, document)


def _keep(identifier: str, document: Mapping[str, Any]) -> Client:
    if document.get("client_id") != identifier:
        raise Refusal("invalid_client", "The client's metadata document names another client_id than its own address.")
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
    """Delete clients that never got a connection within a day, or whose last connection is gone."""
    with transaction.atomic():
        unused = Client.objects.filter(created_at__lt=now() - UNUSED_KEPT).exclude(
            Exists(Grant.objects.filter(client=OuterRef("pk")))
        )
        unused = unused.exclude(Exists(AuthorizationCode.objects.filter(client=OuterRef("pk"), expires_at__gt=now())))
        return unused.delete()[1].get("oauth.Client", 0)


def redirect_of(client: Client, asked: str) -> str:
    """
    Give the proven address that the answer goes to.

    Raises:
        Refusal: invalid_request. The answer must be shown, never sent (RFC 6749, section 4.1.2.1).
    """
    if not asked and len(client.redirect_uris) == 1:
        return str(client.redirect_uris[0])
    if not asked:
        raise Refusal("invalid_request", "redirect_uri is missing, and the client has registered more than one.")
    if any(redirects.matches(asked, registered) for registered in client.redirect_uris):
        return asked
    raise Refusal("invalid_request", f"The redirect_uri {echo(asked)} is not one that the client registered.")


def _read(metadata: Mapping[str, Any], error: Any) -> tuple[str, str, list[str]]:
    """Give name, home page and redirect addresses, checked."""
    if fault := first_text_fault(dict(metadata)):
        raise Refusal(error, f"{echo(fault[0]) or 'A member'} {fault[1]}.")
    addresses = _texts(metadata, "redirect_uris", ())
    if not addresses:
        raise Refusal("invalid_redirect_uri", "redirect_uris is missing; answers need a place to go.")
    if len(addresses) > MAX_REDIRECTS:
        raise Refusal("invalid_redirect_uri", f"redirect_uris has more than {MAX_REDIRECTS} entries.")
    for address in addresses:
        redirects.check(address)
    home = metadata.get("client_uri") or ""
    if not isinstance(home, str) or len(home) > redirects.MAX_CHARACTERS or not home.startswith("https://"):
        home = ""  # shown to people, so only what a browser may safely follow is kept
    return _name(metadata.get("client_name"), error), home, list(dict.fromkeys(addresses))


def _texts(metadata: Mapping[str, Any], member: str, default: tuple[str, ...]) -> list[str]:
    value = metadata.get(member)
    if value is None:
        return list(default)
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        error: Any = "invalid_redirect_uri" if member == "redirect_uris" else "invalid_client_metadata"
        raise Refusal(error, f"{member} is not a list of strings.")
    return value


def _name(value: object, error: Any) -> str:
    """Check a client's name: people will read it, so it may not pose as somebody's word about itself."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or len(value) > MAX_NAME_CHARACTERS:
        raise Refusal(error, f"client_name is not a text of at most {MAX_NAME_CHARACTERS} characters.")
    name = " ".join(value.split())
    if not name.isprintable():
        raise Refusal(error, "client_name has characters that cannot be seen.")
    if any(_mixes_alphabets(word) for word in name.split()):
        raise Refusal(error, "client_name mixes alphabets within a word, as a name that imitates another does.")
    plain = "".join(c for c in unicodedata.normalize("NFKD", name).casefold() if c.isalnum())
    for own in (_PRODUCT, config.current().registry_name):
        folded = "".join(c for c in unicodedata.normalize("NFKD", own).casefold() if c.isalnum())
        if folded and plain.startswith(folded):
            raise Refusal(error, f"client_name begins with {echo(own)}, which is this registry's own name.")
    for boast in _BOASTS:
        if boast in plain:
            raise Refusal(error, f"client_name says {boast}, which is not for a client to say.")
    return name


def _mixes_alphabets(word: str) -> bool:
    """Tell whether Latin letters stand beside letters of an alphabet that has some of the same shape."""
    letters = (c for c in unicodedata.normalize("NFKD", word) if c.isalpha())
    alphabets = {unicodedata.name(c, "").partition(" ")[0] for c in letters}
    return "LATIN" in alphabets and not alphabets.isdisjoint(_LIKE_LATIN)


def is_document(identifier: str) -> bool:
    """Tell whether a client by this identifier is known by its metadata document."""
    return client_documents.is_document_address(identifier)


def home_of(client: Client) -> str:
    """Give the host that published the client's document; "" for a client that nobody vouches for."""
    if client.kind != Client.Kind.DOCUMENT:
        return ""
    return urlsplit(client.identifier).hostname or ""
