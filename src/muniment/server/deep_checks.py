"""`muniment doctor --deep`: everything stored against its source, its digest and its references."""

import json
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.parse import urlsplit

from django.db import connection

from muniment.backup.scheduled.place import Place
from muniment.backup.scheduled.reading import check_all
from muniment.config import Config
from muniment.kernel.phrases.phrase import Phrase
from muniment.masking import masked
from muniment.scrub.checks import Check, Damage, checks
from muniment.server.findings import Finding, bad, good, warning
from muniment.server.node_scrub import node_checks
from muniment.setting_values import Provider
from muniment.store.database.migrations import has_begun, pending

SHOWN: Final = 10
"""Maximum number of damages of one check that are listed."""
_PROBE_S: Final = 10


def examine_deeply(config: Config) -> Iterator[Finding]:
    """Yield the findings of every check of what is stored, and of the services that the others do not probe."""
    yield from _identity_providers(config)
    try:
        is_ready = has_begun() and not pending()
    except Exception as error:  # noqa: BLE001 - a damaged file raises anything, and the pages say more
        yield bad("database", Phrase("cannot be read: {error}", error=masked(str(error)).strip()))
        is_ready = True
    if not is_ready:
        yield warning("stored data", "not examined; run muniment migrate, or serve, and try again")
        return
    for check in (*checks(), *node_checks(config)):
        yield from _of(check)
    connection.close()
    yield from _backups(config)


def _of(check: Check) -> Iterator[Finding]:
    examined, damages = 0, 0
    shown: list[Damage] = []
    try:
        for part in check.whole():
            examined += part.examined
            damages += len(part.damages)
            shown += part.damages[: SHOWN - len(shown)]
    except Exception as error:  # noqa: BLE001 - each check is reported, whatever state the instance is in
        says = Phrase(
            "not examined: {error}; make it reachable and try again",
            error=masked(str(error)).strip() or type(error).__name__,
        )
        yield bad(check.name, says)
        return
    finally:
        connection.close()
    if not damages:
        yield good(check.name, Phrase("{fine} ({examined:,} examined)", fine=check.fine, examined=examined))
        return
    for damage in shown:
        yield (warning if damage.is_minor else bad)(check.name, str(damage))
    if damages > len(shown):
        yield bad(check.name, Phrase("{more:,} more are damaged", more=damages - len(shown)))


def _backups(config: Config) -> Iterator[Finding]:
    """Read every scheduled backup back, with the files beside it."""
    what, address = "stored backups", config.backup_place
    if not address or not (address.startswith("s3:") or Path(address).is_dir()):
        yield good(what, "none yet")
        return
    whole = 0
    try:
        with tempfile.TemporaryDirectory(dir=config.data) as folder:
            for each in check_all(Place(address, Path(folder)), Path(folder)):
                whole += not each.fault
                if each.fault:
                    yield bad(
                        what,
                        Phrase(
                            "{name}: {fault}; do not restore it, the next one is due",
                            name=each.record.name,
                            fault=masked(each.fault),
                        ),
                    )
    except Exception as error:  # noqa: BLE001 - a store that is away or an unreadable list
        yield bad(
            what, Phrase("cannot be read: {error}; see muniment backups --verify", error=masked(str(error)).strip())
        )
    if whole:
        yield good(what, Phrase("{whole:,} can be restored", whole=whole))


def _identity_providers(config: Config) -> Iterator[Finding]:
    """Fetch the metadata of each identity provider, as a sign-in does."""
    if not config.oidc_providers:
        yield good("identity provider", "none; accounts sign in here")
    for each in config.oidc_providers:
        yield _identity_provider(f"identity provider {each.key}", each)


def _identity_provider(what: str, provider: Provider) -> Finding:
    address = f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration"
    if urlsplit(address).scheme not in {"http", "https"}:
        return bad(
            what,
            Phrase("{issuer} is not a web address; correct MUNIMENT_OIDC_PROVIDERS", issuer=masked(provider.issuer)),
        )
    try:
        with urllib.request.urlopen(address, timeout=_PROBE_S) as answer:  # noqa: S310 - http or https, and set by the operator
            issuer = json.load(answer).get("issuer", "")
    except (OSError, URLError, ValueError, AttributeError) as error:
        says = Phrase(
            "{address} does not answer: {error}; accounts cannot sign in through it",
            address=masked(address),
            error=masked(str(error)),
        )
        return bad(what, says)
    if issuer.rstrip("/") != provider.issuer.rstrip("/"):
        return bad(
            what,
            Phrase(
                "{address} names the issuer {issuer!r}; write it into MUNIMENT_OIDC_PROVIDERS",
                address=address,
                issuer=issuer,
            ),
        )
    return good(what, Phrase("{issuer} answers", issuer=provider.issuer))
