"""The result of an import in words: its stored result without the numbers that are zero."""

from django.utils.translation import gettext

from muniment.kernel.phrases.phrase import Joined, Phrase
from muniment.languages.translated import translated
from muniment.languages.writing import number
from muniment.registry.exchange.results import IMPORTED, NOTHING_INVALID, UNDONE


def outcome(result: str) -> str:
    """Return the result of an import or an undo as pages say it."""
    sentences = result.parts if isinstance(result, Joined) else (result,)
    return "; ".join(filter(None, map(_in_words, sentences)))


def _in_words(sentence: str) -> str:
    template = sentence.template if isinstance(sentence, Phrase) else sentence
    if template == NOTHING_INVALID:
        return ""
    if isinstance(sentence, Phrase) and template == IMPORTED:
        kinds = {
            "people": gettext("People"),
            "companies": gettext("Companies"),
            "frameworks": gettext("Frameworks"),
        }
        counts = {
            gettext("%(count)s new"): sentence.values["new"],
            gettext("%(count)s changed"): sentence.values["changed"],
            gettext("%(count)s unchanged"): sentence.values["unchanged"],
        }
        return f"{kinds[sentence.values['kind']]}: {_counted(counts) or gettext('nothing')}"
    if isinstance(sentence, Phrase) and template == UNDONE:
        counts = {
            gettext("%(count)s rows restored"): sentence.values["restored"],
            gettext("%(count)s rows unpublished"): sentence.values["unpublished"],
            gettext("%(count)s rows kept"): sentence.values["kept"],
        }
        return _counted(counts) or gettext("Nothing was restored")
    return translated(sentence)


def _counted(counts: dict[str, int]) -> str:
    """Return the numbers that are not zero, each with its word."""
    texts = []
    for words, count in counts.items():
        if count:
            texts.append(words % {"count": number(count)})
    return ", ".join(texts)
