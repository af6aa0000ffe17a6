"""
Sections that plugins add to the pages of companies and people.

A page is the same for every visitor and is kept, so a plugin sees nothing but the published document, and its answer
is data: texts that are escaped, and Markdown that is cleaned. A thread cannot be ended from outside, so a plugin that
is too slow is not waited for, and is not asked again for a minute.
"""

import logging
import re
import threading
import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from muniment.kernel.json import JSONObject
from muniment.plugins.loading import HookCall, installed
from muniment.plugins.values import Section, SectionFact
from muniment.web.presenters import markdown
from muniment.web.presenters.company import safe_link

PATIENCE_S: Final = 0.5
PAUSE_S: Final = 60.0
MOST_SECTIONS: Final = 5
MOST_FACTS: Final = 50
TITLE_CHARACTERS: Final = 100
VALUE_CHARACTERS: Final = 500
TEXT_CHARACTERS: Final = 10_000
_KEY: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
log = logging.getLogger(__name__)
_paused: dict[str, float] = {}
"""The time, by the monotonic clock, until which a plugin that was too slow is not called."""
_late: dict[str, threading.Thread] = {}
"""The thread of a plugin that was too slow; while it runs, the plugin is not asked, so that threads do not pile up."""


class Plugged(NamedTuple):
    """The sections that plugins add to a page, as the template shows them, and whether every plugin answered."""

    sections: list[JSONObject]
    is_complete: bool


def plugged_sections(kind: str, document: Mapping[str, Any]) -> Plugged:
    """Return the sections of all plugins for a published document; what fails is left out and logged."""
    shown: dict[str, JSONObject] = {}
    is_complete = True
    for call in installed().calls("page_section"):
        try:
            sections = _ask(call, kind, document)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises
            is_complete = False
            reason = f"{type(error).__name__}: {error}"
            log.error("plugin %s: its section of a %s is left out: %s", call.plugin, kind, reason)  # noqa: TRY400 - said
            continue
        for section in sections:
            shown.setdefault(section["anchor"], section)
    return Plugged(list(shown.values()), is_complete)


def _ask(call: HookCall, kind: str, document: Mapping[str, Any]) -> list[JSONObject]:
    """Call a plugin in a thread of its own; raise TimeoutError if it takes too long, or did so a moment ago."""
    late = _late.get(call.plugin)
    if time.monotonic() < _paused.get(call.plugin, 0.0) or (late is not None and late.is_alive()):
        raise TimeoutError("it was too slow a moment ago, or has not answered yet")
    outcome: list[list[JSONObject] | Exception] = []

    def run() -> None:
        try:
            # The page shows the document after the plugin, which must not change it.
            answer = call(kind=kind, document=MappingProxyType(dict(document)))
            outcome.append(_sections(answer))
        except Exception as error:  # noqa: BLE001 - raised again by the page
            outcome.append(error)

    thread = threading.Thread(target=run, name=f"plugin {call.plugin}", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    if not outcome:
        _paused[call.plugin] = time.monotonic() + PAUSE_S
        _late[call.plugin] = thread
        raise TimeoutError(f"it took longer than {PATIENCE_S:g} s, and is not asked again for {PAUSE_S:g} s")
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def _sections(answer: Any) -> list[JSONObject]:
    """Return the sections of an answer as the template shows them; raise ValueError or TypeError for a wrong one."""
    if answer is None:
        return []
    sections: Iterable[Any] = (answer,) if isinstance(answer, Section) else answer
    return [_section(section) for section in list(sections)[:MOST_SECTIONS]]


def _section(section: Any) -> JSONObject:
    if not isinstance(section, Section):
        message = f"{type(section).__name__} is no Section"
        raise TypeError(message)
    if not _KEY.fullmatch(section.key):
        message = f"{section.key!r} is no key: use lower case letters, digits and hyphens"
        raise ValueError(message)
    text = str(section.text)[:TEXT_CHARACTERS]
    html = markdown.render(text) if text.strip() else ""
    return {
        "anchor": f"plugin-{section.key}",
        "title": str(section.title)[:TITLE_CHARACTERS],
        "facts": [_fact(fact) for fact in section.facts[:MOST_FACTS]],
        "html": html,
    }


def _fact(fact: SectionFact) -> JSONObject:
    address = str(fact.address)
    # Browsers take what begins with two slashes, or with a slash and a backslash, for an address elsewhere.
    is_own = re.match(r"/(?![/\\])", address) and not re.search(r"[\s<>\"\\]", address)
    if not is_own and address.startswith("/"):
        address = ""
    elif not is_own:
        address = safe_link(address)
    return {
        "label": str(fact.label)[:TITLE_CHARACTERS],
        "value": str(fact.value)[:VALUE_CHARACTERS],
        "address": address,
        "outside": not is_own,
        "lines": (),
    }
