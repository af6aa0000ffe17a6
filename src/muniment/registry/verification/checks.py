"""
Look for a proof in DNS and on a website. Findings are sentences for the account that proves.

The name of a website is resolved once, and only public addresses are connected to; neither aliases of the record nor
redirects of the file are followed, because they may lead to what others control.
"""

import http.client
import logging
import ssl
from collections.abc import Iterable
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext, gettext_noop

from muniment import config
from muniment.kernel.problems import TooMany
from muniment.outbound import fetching
from muniment.outbound.fetching import Connection
from muniment.registry.models import DomainProof
from muniment.registry.verification.hosts import Claim

if TYPE_CHECKING:
    from dns.resolver import Resolver

DNS_TIMEOUT_S: Final = 2.0
SLOTS: Final = 4
"""Checks at once in a process, because each holds a thread while another server answers."""

FOUND: Final = ""
_slots = BoundedSemaphore(SLOTS)
log = logging.getLogger(__name__)

connection: Connection = {}
"""Options of connections to websites; empty in production."""

NO_RECORD: Final = gettext_noop("There is no TXT record of this name yet. New records can take an hour to appear.")
OTHER_RECORD: Final = gettext_noop("There is a TXT record of this name, but it doesn't contain this value.")
ALIAS: Final = gettext_noop("The name is an alias (CNAME) of %(name)s. Create the TXT record at the name itself.")
NO_ANSWER: Final = gettext_noop("The domain's name servers didn't answer. Try again later.")
NO_FILE: Final = gettext_noop("The file could not be read: %(reason)s.")
OTHER_FILE: Final = gettext_noop("The file doesn't contain this value on a line of its own.")
SHARED: Final = gettext_noop("Several listings use this host now, so it can no longer be proven this way.")


def look(claim: Claim, proof: DomainProof) -> str:
    """
    Look for the value of *proof*, over the network.

    Returns:
        The finding; "" if the value was found.

    Raises:
        TooMany: other checks are running.
    """
    if not _slots.acquire(blocking=False):
        raise TooMany("Too many checks are running.", "Try again in a few seconds.", retry_after_s=5)
    try:
        return find_record(claim.record, proof.value) if proof.method == "dns" else find_file(claim, proof.value)
    finally:
        _slots.release()


def find_record(name: str, value: str) -> str:
    import dns.exception  # dnspython takes 2 MB: imported on first use
    import dns.resolver
    from dns.rdtypes.txtbase import TXTBase

    try:
        answer = _resolver().resolve(name, "TXT", search=False, raise_on_no_answer=False)
    except dns.resolver.NXDOMAIN:
        return gettext(NO_RECORD)
    except dns.exception.DNSException as error:
        log.info("could not look up a domain proof: %s", type(error).__name__)
        return gettext(NO_ANSWER)
    if answer.canonical_name != answer.qname:
        return gettext(ALIAS) % {"name": answer.canonical_name.to_text(omit_final_dot=True)[:253]}
    texts = [b"".join(record.strings) for record in answer.rrset or () if isinstance(record, TXTBase)]
    if value.encode() in texts:
        return FOUND
    return gettext(OTHER_RECORD) if texts else gettext(NO_RECORD)


def find_file(claim: Claim, value: str) -> str:
    try:
        how: Connection = {"resolve": addresses_of, **connection}
        answer = fetching.fetch(claim.file_url, accept="text/plain", **how)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return gettext(NO_FILE) % {"reason": _reason(error)}
    lines = (line.strip() for line in answer.body.splitlines())
    return FOUND if value.encode() in lines else gettext(OTHER_FILE)


def _reason(error: Exception) -> str:
    """Return why a file could not be read, without telling anything of the network around this instance."""
    match error:
        case ssl.SSLCertVerificationError():
            return gettext("the certificate of the website is not valid")
        case ssl.SSLError() | http.client.HTTPException():
            return gettext("the website gave no valid response")
        case TimeoutError():
            return gettext("the website took too long to respond")
        case ValueError():
            return str(error)
        case _:
            return gettext("the website could not be reached")


def addresses_of(name: str, _port: int) -> Iterable[str]:
    """
    Resolve a name with a time limit, which the system's resolver does not have.

    Raises:
        OSError: it has no address, or its name servers do not answer.
    """
    import dns.exception

    resolver, found = _resolver(), []
    try:
        for kind in ("A", "AAAA"):
            answer = resolver.resolve(name, kind, search=False, raise_on_no_answer=False)
            found += [record.to_text() for record in answer.rrset or ()]
    except dns.exception.DNSException as error:
        raise OSError from error
    if not found:
        raise OSError
    return found


def _resolver() -> "Resolver":
    import dns.nameserver
    import dns.resolver

    servers = config.current().dns_servers
    resolver = dns.resolver.Resolver(configure=not servers)
    if servers:
        resolver.nameservers = [dns.nameserver.Do53Nameserver(address, port) for address, port in servers]
    resolver.lifetime = DNS_TIMEOUT_S
    return resolver
