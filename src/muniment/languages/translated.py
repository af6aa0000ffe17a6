"""Translation of texts that features write in English into the current language."""

import logging
from typing import Any, Final

from django.utils import formats, translation

from muniment.kernel.phrases.filling import filled
from muniment.kernel.phrases.phrase import Counted, Joined, Phrase, Verbatim
from muniment.kernel.problems import Problem
from muniment.languages.catalogues import SOURCE
from muniment.languages.speaking import language
from muniment.registry_toml.applied import current

_BROKEN: Final = (LookupError, ValueError, TypeError, AttributeError, OverflowError)
log = logging.getLogger(__name__)


def translated(text: str) -> str:
    """
    Return a text of a feature as a page or a mail shows it: the message or the hint of a Problem, a fault, a rule.

    A text without a translation, or whose translation does not fit its values, is shown in English. The result is plain
    text, and has to be escaped like every value.
    """
    if not text or (language() == SOURCE and not current().words.company):
        return str(text)
    return _translated(text)


def told(problem: Problem) -> str:
    """Return what is wrong and what to do about it."""
    return f"{translated(problem.message)} {translated(problem.hint)}"


def in_words(problem: Problem) -> dict[str, dict[str, str]]:
    """Return a problem for a script of a page, which shows its message and its hint."""
    wire = problem.to_wire()
    error = {**wire["error"], "message": translated(problem.message), "hint": translated(problem.hint)}
    return {"error": error}


def stated(words: str) -> str:
    """Return words without a full stop as a sentence, such as those of a fault with the name of its field."""
    return f"{translated(words)}."


def within(label: str) -> str:
    """Return a label inside a sentence: English writes it in small letters there, other languages as it is."""
    return label.lower() if language() == SOURCE else label


def sentence(reason: str) -> str:
    """Return what is wrong with a value as a sentence: it begins with a capital letter, and ends with a full stop."""
    words = translated(reason)
    return f"{words[:1].upper()}{words[1:]}."


def _translated(text: str) -> str:
    if isinstance(text, Verbatim):
        return str(text)
    if isinstance(text, Joined):
        return text.template.join(_translated(each) for each in text.parts)
    if not isinstance(text, Phrase):
        return translation.gettext(text)
    template = _template(text)
    values: dict[str, Any] = {}
    for name, value in text.values.items():
        values[name] = _translated(value) if isinstance(value, Phrase) else value
    try:
        return filled(template, text, values, _number)
    except _BROKEN:
        log.warning("the translation %r into %r does not fit the values of %r", template, language(), text.template)
        return str(text)


def _template(phrase: Phrase) -> str:
    if isinstance(phrase, Counted):
        return translation.ngettext(phrase.template, phrase.several, phrase.values["count"])
    return translation.gettext(phrase.template)


def _number(value: float, style: str) -> str:
    """Return a number as *style* writes it in English, with the separators of the language."""
    if language() == SOURCE:
        return format(value, style)
    separators = {",": "THOUSAND_SEPARATOR", ".": "DECIMAL_SEPARATOR"}
    localized = []
    for sign in format(value, style):
        setting = separators.get(sign)
        localized.append(str(formats.get_format(setting, language())) if setting else sign)
    return "".join(localized)
