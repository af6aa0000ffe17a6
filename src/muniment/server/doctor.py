"""Health checks of `muniment doctor`: the effective settings and the state of each part of the instance."""

import contextlib
import importlib.util
import os
import smtplib
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import django
from django.db import DatabaseError, connection

from muniment import child_process, confinement, private_files
from muniment.assessments.evaluation.language_model.endpoint import lacking
from muniment.config import Config
from muniment.credits.billing import WEBHOOK
from muniment.documents.storage import StorageUnavailable, storage_at
from muniment.kernel.phrases.phrase import Joined, Phrase, Verbatim
from muniment.masking import masked
from muniment.plugins.loading import installed
from muniment.plugins.values import API
from muniment.registry.tables.reading import MEMORY_BYTES
from muniment.server import standbys
from muniment.server.app.startup import writable
from muniment.server.findings import NONE_YET, OFF, PARTLY, UNSET, Finding, bad, good, warning
from muniment.server.http.client_address import OtherHeader
from muniment.server.http.holders import MAX_CONNECTIONS
from muniment.server.limits import by_account, by_address
from muniment.server.process.sockets import connections_within, reachable_file_limit
from muniment.shown_settings import shown_settings, shown_value
from muniment.store.database.form import UnknownDatabase, require_known
from muniment.store.database.migrations import has_begun, pending
from muniment.store.published import SCHEMA_VERSION

if TYPE_CHECKING:
    from muniment.accounts.keys.keyring import Status


def plugin_findings(config: Config) -> Iterator[Finding]:
    """Yield a finding for each plugin; those that could not be loaded stop changes of companies and people."""
    found = installed()
    for plugin in found.plugins:
        what = f"plugin {plugin.name}"
        if plugin.fault:
            refused = "changes are refused meanwhile; mend it, or leave it out of MUNIMENT_PLUGINS"
            yield bad(what, Phrase("was not loaded: {fault}; {refused}", fault=plugin.fault, refused=refused))
        else:
            yield good(what, Joined(": ", (plugin.package or Phrase("no package"), Verbatim(", ".join(plugin.hooks)))))
    if not found.plugins:
        off = Phrase("off") if config.plugins == ("off",) else Phrase("none is installed")
        yield good("plugins", Phrase("{off}; the interface has version {version}", off=off, version=API))


def template_findings(config: Config) -> Iterator[Finding]:
    """Yield what is broken in the templates of the site folder, or may break; needs Django."""
    folder = config.site / "templates"
    if not folder.is_dir():
        return
    from muniment.web.site.notes import template_notes

    notes = list(template_notes(config.site))
    for note in notes:
        if note.is_fault:
            yield bad("template", note.says)
        else:
            yield warning("template", note.says)
    if not any(note.is_fault for note in notes):
        yield good("templates", Phrase("those in {folder} can be compiled", folder=folder))


def confinement_finding() -> Finding:
    """Return what the processes that read untrusted files can still reach."""
    what = "file readers"
    missing = child_process.unconfined()
    memory = Phrase("at most {megabytes:,} MB", megabytes=child_process.memory_limit(MEMORY_BYTES) >> 20)
    if not missing:
        fine = "processes that read untrusted files reach no other file, no network and no program; {memory}"
        return good(what, Phrase(fine, memory=memory))
    open_ways: list[str] = []
    if confinement.FILES in missing:
        open_ways.append(Phrase("other files (the kernel has no Landlock, or a container's profile refuses it)"))
    if confinement.NETWORK in missing or confinement.PROGRAMS in missing:
        open_ways.append(Phrase("the network and programs (no seccomp on this machine)"))
    reached = Joined("; ", open_ways)
    return warning(
        what,
        Phrase("processes that read untrusted files also reach {reached}; {memory}", reached=reached, memory=memory),
    )


MAIL_WAITS_S: Final = 300


def settings_lines(config: Config) -> Iterator[str]:
    """Yield each setting with its value, origin, default and help. Secrets stay hidden."""
    for each in shown_settings(config):
        is_default = each.origin == "default"
        default = each.origin if is_default else f"{each.origin}; default: {each.default or '(empty)'}"
        yield f"{each.variable} = {each.value or '(empty)'}  [{default}]"
        yield f"    {each.help}"


def examine(config: Config) -> list[Finding]:
    first = (_database, _currency, _replication, _secret_key, _published, _store)
    checks = (*first, _backups, _jobs, _mail, _proxies, _connections, _billing, _model)
    unknown = [warning("settings", says) for says in config.unknown]
    return [
        *unknown,
        _folder(config.data),
        *_keys(config.data / "keys"),
        *(check(config) for check in checks),
        *plugin_findings(config),
        *_templates(config),
        confinement_finding(),
        *_limits(config),
    ]


def _limits(config: Config) -> list[Finding]:
    address = PARTLY if not config.rate_limit else ""
    account = PARTLY if not (config.rate_limit and config.account_writes and config.account_cpu_ms) else ""
    return [
        good("limits by address", by_address(config), address),
        good("limits by account", by_account(config), account),
    ]


def _templates(config: Config) -> list[Finding]:
    if not (config.site / "templates").is_dir():
        return []
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "muniment.settings")
    django.setup()
    return list(template_findings(config))


def _folder(folder: Path) -> Finding:
    if not folder.exists():
        return good("data folder", Phrase("{folder} does not exist yet; the first start creates it", folder=folder))
    if not writable(folder):
        return bad("data folder", Phrase("{folder} is not writable, or its disk is full", folder=folder))
    if folder.stat().st_mode & private_files.MASK:
        return warning(
            "data folder", Phrase("other users can look into {folder}; run chmod 700 {folder}", folder=folder)
        )
    room = os.statvfs(folder)
    return good(
        "data folder",
        Phrase("{folder}, {gigabytes:.1f} GB free", folder=folder, gigabytes=room.f_bavail * room.f_frsize / (1 << 30)),
    )


def _keys(folder: Path) -> list[Finding]:
    if not folder.exists():
        return []
    readable = []
    for file in folder.iterdir():
        if file.is_file() and file.stat().st_mode & 0o077:
            readable.append(file.name)
    if readable:
        return [bad("keys", Phrase("other users can read {files}; run chmod 600", files=", ".join(readable)))]
    return [good("keys", "readable by their owner only")]


def _database(config: Config) -> Finding:  # noqa: PLR0911 - one for each state of a database
    if not config.on_postgresql and not config.database_file.exists():
        return good("database", "SQLite, does not exist yet; the first start creates it")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "muniment.settings")
    try:
        django.setup()
        from muniment.registry.people.suppression import warnings

        require_known()
        missing, is_new = pending(), not has_begun()
        found = [] if missing or is_new else warnings()
    except UnknownDatabase as error:
        return bad("database", str(error))
    except DatabaseError as error:
        return bad("database", Phrase("does not answer: {error}", error=masked(str(error)).strip()))
    except OSError as error:
        return bad("database", Phrase("cannot be reached: {error}", error=error))
    finally:
        connection.close()
    if is_new:
        return good(
            "database",
            Phrase(
                "{database}, no migrations applied yet; run muniment migrate, or serve",
                database=connection.display_name,
            ),
        )
    if missing:
        return bad(
            "database", Phrase("{missing} migrations are pending; run muniment migrate, or serve", missing=missing)
        )
    return Finding(
        "database",
        not found,
        Joined("; ", (Phrase("{database}, all migrations applied", database=connection.display_name), *found)),
    )


def _replication(config: Config) -> Finding:
    """Return what protects acknowledged changes when the database fails."""
    what = "replication"
    if not config.on_postgresql:
        return good(what, "none: SQLite is one file; backups are the only copy")
    try:
        found = standbys.read()
    except (DatabaseError, OSError):
        return good(what, "examined when the database answers")
    finally:
        connection.close()
    verdict = standbys.judge(found)
    return Finding(what, is_good=True, says=verdict.says, warns=verdict.warns)


def _currency(config: Config) -> Finding:
    """Compare the setting with the currency of the stored amounts."""
    what = "currency"
    if not config.on_postgresql and not config.database_file.exists():
        return good(what, Phrase("{currency}, stored by the first start", currency=config.currency))
    try:
        if pending():
            return good(what, "compared after the migrations")
        from muniment.registry.currency import OtherCurrency, stored_currency

        stored = stored_currency()
    except (DatabaseError, OSError):
        return good(what, "compared when the database answers")
    finally:
        connection.close()
    if stored and stored != config.currency:
        return bad(what, str(OtherCurrency(stored, config.currency)))
    return good(what, Phrase("amounts are in {currency}", currency=stored or config.currency))


def _secret_key(config: Config) -> Finding:
    """Compare the keys of this node with the fingerprints in the database."""
    what = "secret key"
    if not config.on_postgresql and not config.database_file.exists():
        return good(what, "made by the first start")
    try:
        if pending():
            return good(what, "compared after the migrations")
        from muniment.accounts.keys import keyring

        found = keyring.status()
    except (DatabaseError, OSError):
        return good(what, "compared when the database answers")
    finally:
        connection.close()
    lacking = [key.fingerprint for key in found.keys if key.state and not key.is_here]
    if lacking:
        return bad(
            what, Phrase("{keys} is used by the database and missing here; see muniment keys", keys=", ".join(lacking))
        )
    advice = _key_advice(config, found)
    if advice:
        return warning(what, advice)
    return good(what, Phrase("{fingerprint}, the one that the database uses", fingerprint=found.keys[0].fingerprint))


def _key_advice(config: Config, found: "Status") -> str:
    if not any(key.state for key in found.keys):
        return "no fingerprint is recorded; run muniment keys adopt"
    unopened = []
    for words, count in found.unopened.items():
        if count:
            unopened.append(f"{count:,} {words}")
    if unopened:
        return Phrase("no key of this node opens {unopened}; see muniment keys", unopened=", ".join(unopened))
    others = [key.fingerprint for key in found.keys if key.state != "current"]
    if others:
        return Phrase("a rotation is unfinished: {others} is listed too; see muniment keys", others=", ".join(others))
    if config.on_postgresql and not config.secret_key:
        return "a file of this node; set MUNIMENT_SECRET_KEY to the same key on every node"
    return ""


def _published(config: Config) -> Finding:
    file = config.published_file
    if not file.exists():
        return good("published documents", "none yet")
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            edition, schema = connection.execute("SELECT edition, schema FROM published_meta").fetchone()
            totals = dict(connection.execute("SELECT kind, n FROM published_total"))
    except (sqlite3.Error, TypeError) as error:
        return bad("published documents", Phrase("cannot be read: {error}", error=error))
    if schema != SCHEMA_VERSION:
        says = Phrase(
            "have schema {schema}, this version writes {known}; run muniment migrate, or serve",
            schema=schema,
            known=SCHEMA_VERSION,
        )
        return bad("published documents", says)
    says = Phrase(
        "edition {edition:,}: companies {companies:,}, people {people:,}, frameworks {frameworks:,}",
        edition=edition,
        companies=totals.get("company", 0),
        people=totals.get("person", 0),
        frameworks=totals.get("framework", 0),
    )
    return good("published documents", says)


def _store(config: Config) -> Finding:
    if not config.storage_url and not config.data.exists():
        return good("document store", "a folder, does not exist yet; the first start creates it")
    place = masked(config.storage_url) or str(config.data / "blobs")
    try:
        storage_at(config.data / "blobs", config.storage_url).probe()
    except (StorageUnavailable, OSError) as error:
        return bad("document store", masked(f"{place} {error}"))
    return good("document store", Phrase("{place}: a probe was written, read and deleted", place=place))


def _backups(config: Config) -> Finding:
    """Check how much would be lost with the database now."""
    what = "backups"
    if not config.on_postgresql and not config.database_file.exists():
        if not config.backup_place:
            return good(what, "off")
        return good(what, Phrase("the first start begins them, in {place}", place=masked(config.backup_place)))
    from muniment.backup.scheduled import job

    try:
        found = None if pending() or not has_begun() else job.backup_status()
    except DatabaseError:
        return bad(what, "the database does not answer, so the age of the last backup is unknown")
    finally:
        connection.close()
    if found is None:
        return good(what, "begin after the migrations")
    says, needs_attention = job.described(found, config)
    if needs_attention:
        return warning(what, masked(says))
    state = ""
    if not found.last:
        state = NONE_YET if config.backup_place else OFF
    return good(what, masked(says), state)


def _jobs(config: Config) -> Finding:
    """Name the jobs that were given up because they may end the processes that run them."""
    what = "background jobs"
    if not config.on_postgresql and not config.database_file.exists():
        return good(what, "none yet")
    from muniment.jobs import queue  # the check of the database has set up Django

    try:
        killed = {} if pending() or not has_begun() else queue.killed_jobs()
    except DatabaseError:
        return bad(what, "the database does not answer, so failed jobs are unknown")
    finally:
        connection.close()
    if not killed:
        return good(what, "none has ended its process")
    kinds = ", ".join(f"{kind} ({count:,})" for kind, count in killed.items())
    says = "given up, because their process ended while they ran: {kinds}; see Jobs, and the log of that time"
    return warning(what, Phrase(says, kinds=kinds))


def _proxies(config: Config) -> Finding:
    if not config.trusted_proxies:
        return good("proxies", "none is trusted; a client is the address that connects")
    seen = OtherHeader.read(config.data, config.forwarded_header, time.time())
    if seen is not None:
        at = datetime.fromtimestamp(seen.at, UTC)
        return warning(
            "proxies", Phrase("{advice} (last seen {at} UTC)", advice=seen.advice, at=f"{at:%Y-%m-%d %H:%M}")
        )
    return good(
        "proxies",
        Phrase(
            "{proxies} name clients in {header}",
            proxies=shown_value(config.trusted_proxies),
            header=config.forwarded_header,
        ),
    )


def _mail(config: Config) -> Finding:
    place = masked(config.mail_url) or Phrase(
        "{folder} and is not delivered; set MUNIMENT_MAIL_URL to send over SMTP", folder=config.data / "mail"
    )
    state = "" if config.mail_url else UNSET
    if not config.on_postgresql and not config.database_file.exists():
        return good("mail", Phrase("goes to {place}", place=place), state)
    from muniment.mail import delivery  # the check of the database has set up Django

    if config.mail_url:
        try:
            delivery.probe(config.mail_url)
        except (OSError, smtplib.SMTPException) as error:
            return bad(
                "mail",
                Phrase("{place} does not answer: {error}; messages wait for it", place=place, error=masked(str(error))),
            )
    try:
        if pending() or not has_begun():
            found = delivery.MailStatus(0, 0.0, 0)
        else:
            found = delivery.mail_status()
    except DatabaseError:
        return bad("mail", "the database does not answer, so the number of waiting messages is unknown")
    finally:
        connection.close()
    says = Phrase(
        "goes to {place}; {waiting:,} messages wait, {failed:,} failed this week",
        place=place,
        waiting=found.waiting,
        failed=found.failed,
    )
    if found.failed or found.oldest_s > MAIL_WAITS_S:
        return warning(
            "mail", Phrase("{says}; the oldest waits for {minutes:,.0f} min", says=says, minutes=found.oldest_s / 60)
        )
    return good("mail", says, state)


def _connections(_: Config) -> Finding:
    files = reachable_file_limit()
    allowed = connections_within(MAX_CONNECTIONS, files)
    says = Phrase("{allowed:,} in a process", allowed=allowed)
    if allowed < MAX_CONNECTIONS:
        limit = Phrase(
            "the limit of open files ({files}) allows {says}; raise it (ulimit -n, LimitNOFILE)", files=files, says=says
        )
        return warning("connections", limit)
    return good("connections", says)


def _billing(config: Config) -> Finding:
    needed = ("credit_packs", "stripe_secret_key", "stripe_webhook_secret")
    missing = []
    for name in needed:
        if not getattr(config, name):
            missing.append(f"MUNIMENT_{name.upper()}")
    if len(missing) == len(needed):
        return good("buying credits", "off; operators grant them", OFF)
    if missing:
        return bad(
            "buying credits", Phrase("off, missing {missing}; set all three or none", missing=" and ".join(missing))
        )
    if importlib.util.find_spec("stripe") is None:
        return bad("buying credits", 'off, the extra is missing: pip install "muniment[stripe]"')
    if not config.stripe_secret_key.startswith(("sk_", "rk_")) or not config.stripe_webhook_secret.startswith("whsec_"):
        return bad("buying credits", "Stripe keys begin with sk_ or rk_, webhook secrets with whsec_")
    mode = "in test mode" if "_test_" in config.stripe_secret_key else "in live mode"
    webhook = f"{config.base_url or 'http://…'}{WEBHOOK}"
    return good(
        "buying credits",
        Phrase(
            "Stripe {mode}, {packs} packs; webhook {webhook}",
            mode=mode,
            packs=len(config.credit_packs),
            webhook=webhook,
        ),
    )


def _model(config: Config) -> Finding:
    """Check the client of the language model. The model itself is not called, since calls cost money."""
    if not config.model_url:
        return good("language model", "off; rules evaluate reports", OFF)
    fault = lacking()
    if fault:
        return bad("language model", fault)
    return good(
        "language model",
        Phrase(
            "{model} at {server} evaluates reports", model=config.model_name, server=urlsplit(config.model_url).netloc
        ),
    )


def examine_storage() -> list[Finding]:
    """Verify documents against their blobs. Requires that all migrations are applied."""
    from muniment.documents.cleanup import examine as examine_documents

    if not has_begun():
        return [good("documents", "none yet")]
    found = examine_documents()
    kept = Phrase("{blobs:,} blobs of {blob_bytes:,} bytes", blobs=found.blobs, blob_bytes=found.blob_bytes)
    missing = Phrase(
        "{count:,} have no blob: {first}; restore the store from a backup",
        count=len(found.missing),
        first=_first(found.missing),
    )
    orphans = Phrase(
        "{count:,} belong to no document: {first}; the next cleanup deletes them",
        count=len(found.orphans),
        first=_first(found.orphans),
    )
    documents = good("documents", Phrase("each has its blob; {kept}", kept=kept))
    if found.missing:
        documents = bad("documents", missing)
    blobs = bad("blobs", orphans) if found.orphans else good("blobs", "each belongs to a document")
    return [documents, blobs]


def _first(names: list[str]) -> str:
    text = ", ".join(names[:5])
    return f"{text}, …" if len(names) > 5 else text


def examine_ledger() -> list[Finding]:
    from muniment.credits.operations import check_ledger

    if not has_begun():
        return [good("ledger", "none yet")]
    faults = check_ledger()
    if faults:
        return [bad("ledger", "; ".join(faults[:10]))]
    return [good("ledger", "every balance equals its transfers, and the total is zero")]


def examine_values() -> list[Finding]:
    """List the stored values that break a rule. They are served and stay, so none fails the check."""
    from muniment.registry.review.values import all_broken_values

    if not has_begun():
        return [good("values", "none yet")]
    findings = []
    for of, fault in all_broken_values():
        findings.append(warning("value", Joined("", (Verbatim(f"{of}: {fault.field} "), fault.reason))))
    if not findings:
        return [good("values", "every stored value follows the rules")]
    says = Phrase("{count:,} break a rule; an edit that touches one must correct it", count=len(findings))
    return [warning("values", says), *findings]
