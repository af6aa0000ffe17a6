"""
Fetch client metadata documents, from public addresses only (SSRF protection).

A document has at most 8 KB and takes at most 4 s; failures are cached for a minute. The whole instance
shares one rate limit, of which an account has a tenth.

Source: draft-ietf-oauth-client-id-metadata-document, sections 3, 4 and 6.5; decisions, section 4.
"""

import http.client
import logging
from threading import BoundedSemaphore
from typing import Final, Unpack
from urllib.parse import urlsplit

from django.core.cache import cache

from muniment.kernel.http.representations import digest
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject, read_json
from muniment.oauth.errors import Refusal
from muniment.outbound import fetching
from muniment.outbound.fetching import Connection

FAILURE_KEPT_S: Final = 60
FETCHES_A_MINUTE: Final = 10
FETCHES_AN_HOUR: Final = 100
FETCHES_OF_AN_ACCOUNT_AN_HOUR: Final = 10
PORT: Final = 443

log = logging.getLogger(__name__)
_slots = BoundedSemaphore(2)


def is_document_address(identifier: str) -> bool:
    """Return whether a client_id is the URL of a metadata document: https, with a plain path."""
    if not identifier.startswith("https://") or not all("!" <= c <= "~" for c in identifier):
        return False
    try:
        parts = urlsplit(identifier)
        port = parts.port
    except ValueError:
        return False
    if not parts.hostname or port not in {None, PORT} or "@" in parts.netloc:
        return False
    if "#" in identifier or "\\" in identifier:
        return False
    # One address for each document: none with segments that a client of HTTP would resolve.
    segments = parts.path.split("/")
    return parts.path not in {"", "/"} and "." not in segments and ".." not in segments


def fetch(address: str, account_id: int) -> JSONObject:
    """
    Fetch a client's document for an account.

    Raise a Refusal: invalid_client, or temporarily_unavailable over the rate limit.
    """
    failed = f"client-document:{digest(address.encode())}"
    if cache.get(failed):
        raise _unreadable()
    _hold_to_rate(account_id)
    if not _slots.acquire(blocking=False):
        raise _too_many()
    try:
        return read(address)
    except (OSError, ValueError, http.client.HTTPException, RecursionError) as error:
        log.info("could not fetch client metadata document: %s", type(error).__name__)
        cache.set(failed, 1, FAILURE_KEPT_S)
        raise _unreadable() from None
    finally:
        _slots.release()


def read(address: str, **connection: Unpack[Connection]) -> JSONObject:
    """
    Read a document; *connection* replaces parts of how :func:`muniment.outbound.fetching.fetch` connects.

    Raises:
        OSError: no connection, or a timeout.
        ValueError: the address is not public, or the response is not a metadata document.
    """
    answer = fetching.fetch(address, accept="application/json", **connection)
    if answer.media_type != "application/json" and not answer.media_type.endswith("+json"):
        raise ValueError("the response is not JSON")
    found = read_json(answer.body)
    if not isinstance(found, dict):
        raise ValueError("the document is not an object")  # noqa: TRY004 - external input
    return found


def _hold_to_rate(account_id: int) -> None:
    at = now()
    for key, limit, kept in (
        (f"client-documents-for:{account_id}:{at:%Y%m%d%H}", FETCHES_OF_AN_ACCOUNT_AN_HOUR, 3_700),
        (f"client-documents:{at:%Y%m%d%H%M}", FETCHES_A_MINUTE, 90),
        (f"client-documents:{at:%Y%m%d%H}", FETCHES_AN_HOUR, 3_700),
    ):
        cache.add(key, 0, timeout=kept)
        if cache.incr(key) > limit:
            raise _too_many()


def _unreadable() -> Refusal:
    return Refusal("invalid_client", "The client's metadata document could not be read from its address.")


def _too_many() -> Refusal:
    return Refusal("temporarily_unavailable", "Too many client metadata documents were requested; try again later.")
