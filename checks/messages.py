"""
Keep the message catalogues in step with the texts of the code. Needs no gettext program.

``messages.py`` adds new texts to every catalogue and removes those that are no longer used. ``messages.py --check``
changes nothing: it reports what is missing, untranslated or has other placeholders, and exits with 1 if it found
anything.

Texts are the constants of gettext functions, of the translation tags of templates, and those that the code shows
through a variable: labels, help and suggested values of the schema's fields, and help of settings.
"""

import argparse
import ast
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import phrases
import polib

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "muniment"
FUNCTIONS = {
    **dict.fromkeys(("gettext", "gettext_lazy", "gettext_noop", "said", "_"), ("text",)),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), ("text", "plural")),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), ("context", "text")),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), ("context", "text", "plural")),
}
"""What the arguments of each function are."""
VARIABLE = {"schema": ("Field", (2, 3)), "config.py": ("Setting", (2,))}
"""Calls whose arguments, by place, are shown through a variable."""
LANGUAGES = SOURCE / "locale"
_CALL = re.compile(r"\b(?:(?:n|p|np)?gettext|_)\((?=\s*u?['\"])")


class Message(NamedTuple):
    """A text, with its plural and its context if it has them."""

    text: str
    plural: str = ""
    context: str = ""


def found() -> dict[Message, list[str]]:
    """Return every text, with the files that have it."""
    places: dict[Message, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if "migrations" not in path.parts:
            said = [Message(each.text, each.plural) for each in phrases.of_features(path)]
            for message in [*of_code(ast.parse(path.read_text("utf-8"))), *_through_variables(path), *said]:
                places.setdefault(message, set()).add(str(path.relative_to(SOURCE)))
    for path in sorted([*SOURCE.rglob("templates/**/*.html"), *SOURCE.rglob("templates/**/*.txt")]):
        for message in of_template(path.read_text("utf-8"), str(path)):
            places.setdefault(message, set()).add(str(path.relative_to(SOURCE)))
    for message in [*_choices(), *map(Message, phrases.states())]:
        places.setdefault(message, set()).add("schema")
    for message in _of_tables():
        places.setdefault(message, set()).add("store/tables/form.py")
    # A text with a plural is also that text without one: a catalogue has each text once.
    for message in [each for each in places if each.plural]:
        places[message] |= places.pop(message._replace(plural=""), set())
    return {message: sorted(files) for message, files in places.items() if message.text}


def of_code(tree: ast.AST) -> Iterator[Message]:
    """Yield the texts of calls of gettext functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            wanted = FUNCTIONS.get(name, ())
            texts = [getattr(each, "value", None) for each in node.args[: len(wanted)]]
            if texts and len(texts) == len(wanted) and all(isinstance(each, str) for each in texts):
                yield Message(**dict(zip(wanted, texts, strict=True)))


def of_template(source: str, name: str) -> Iterator[Message]:
    """Yield the texts of translation tags: Django writes a template as calls, one after another."""
    from django.utils.translation.template import templatize

    code = templatize(source, origin=name)
    for call in _CALL.finditer(code):
        yield from of_code(ast.parse(_whole_call(code[call.start() :]), mode="eval"))


def _whole_call(code: str) -> str:
    """Return the call with which *code* begins."""
    end = code.index("(")
    while (end := code.find(")", end + 1)) >= 0:
        try:
            ast.parse(code[: end + 1], mode="eval")
        except SyntaxError:
            continue
        return code[: end + 1]
    raise ValueError(code[:80])


def _through_variables(path: Path) -> Iterator[Message]:
    relative = path.relative_to(SOURCE)
    name, places = VARIABLE.get(relative.parts[0], ("", ()))
    if not name:
        return
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name:
            named = [each.value for each in node.keywords if each.arg in {"label", "help"}]
            for each in [*(node.args[place] for place in places if place < len(node.args)), *named]:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield Message(each.value)


def _choices() -> Iterator[Message]:
    """Yield the values of choices as forms show them, and those that fields suggest as pages show them."""
    from muniment.schema.kinds import Choice, Text
    from muniment.schema.objects import registry_schema

    def walk(value: Any, seen: set[int]) -> Iterator[Message]:
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, Choice):
            yield from (Message(each.capitalize()) for each in value.values if each.islower())
        if isinstance(value, Text):
            yield from (Message(each, context="value") for each in value.suggest)
        for each in _parts(value):
            yield from walk(each, seen)

    yield from walk(registry_schema("USD"), set())


def _of_tables() -> Iterator[Message]:
    """Yield what columns of the public tables hold, which the page about them shows: descriptions of fields too."""
    from muniment.kernel.phrases.phrase import Phrase
    from muniment.schema.objects import registry_schema
    from muniment.store.tables.form import Form

    def texts(phrase: Phrase) -> Iterator[str]:
        yield phrase.template
        for value in phrase.values.values():
            if isinstance(value, Phrase):
                yield from texts(value)

    for table in Form(registry_schema("USD")).tables:
        for column in table.columns:
            yield from map(Message, texts(column.help))


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()
    elif type(value).__module__.startswith("muniment.schema"):
        names = (name for name in dir(value) if not name.startswith("__"))
        yield from (each for name in names if not callable(each := getattr(value, name, None)))


def key_of(entry: polib.POEntry) -> Message:
    return Message(entry.msgid, entry.msgid_plural or "", entry.msgctxt or "")


def faults_of(path: Path, messages: dict[Message, list[str]]) -> Iterator[str]:
    """Yield what is wrong with a catalogue."""
    from muniment.languages.catalogues import faults

    catalogue = polib.pofile(str(path), wrapwidth=0)
    entries = {key_of(entry): entry for entry in catalogue if not entry.obsolete}
    for message in messages.keys() - entries.keys():
        yield f"{path.parts[-3]}: {message.text[:70]!r} is missing. Run: make messages"
    for message in entries.keys() - messages.keys():
        yield f"{path.parts[-3]}: {message.text[:70]!r} is not used. Run: make messages"
    for entry in entries.values():
        if entry.fuzzy:
            yield f"{path.parts[-3]}: {entry.msgid[:70]!r} is marked as fuzzy"
        for fault in faults(entry):
            yield f"{path.parts[-3]}: {entry.msgid[:70]!r}: {fault}"


def update(path: Path, messages: dict[Message, list[str]]) -> int:
    """Write a catalogue with the texts of the code; return how many are not translated."""
    before = polib.pofile(str(path), wrapwidth=0)
    known = {key_of(entry): entry for entry in before}
    after = polib.POFile(wrapwidth=0)
    after.metadata, after.header = before.metadata, before.header
    for message, files in sorted(messages.items(), key=lambda item: (item[1][0], item[0])):
        entry = known.get(message) or polib.POEntry(
            msgid=message.text,
            msgid_plural=message.plural,
            msgctxt=message.context or None,
            msgstr_plural={0: "", 1: ""} if message.plural else {},
        )
        entry.obsolete = False
        entry.occurrences = [(each, "") for each in files[:1]]
        entry.flags = ["python-format"] if re.search(r"%(\(\w+\))?[sd]", message.text) else []
        after.append(entry)
    path.write_text(f"{after}\n", "utf-8")
    return sum(not entry.translated() for entry in after)


def main() -> int:
    """Update or check the catalogues."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, and exit with 1 if there are faults")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        os.environ["MUNIMENT_DATA"] = data
        os.environ["DJANGO_SETTINGS_MODULE"] = "muniment.settings"
        import django

        django.setup()
        messages = found()
        catalogues = sorted(LANGUAGES.glob("*/LC_MESSAGES/django.po"))
        if asked.check:
            wrong = [fault for path in catalogues for fault in faults_of(path, messages)]
            print("\n".join(wrong) or f"{len(messages)} messages in {len(catalogues)} catalogues")
            return 1 if wrong else 0
        for path in catalogues:
            print(f"{path.parts[-3]}: {len(messages)} messages, {update(path, messages)} not translated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
