"""
Filter a model's reason before a report shows it.

A manipulated model could reveal confidential texts. Its reason is shown only if it is plain text and shares no run of
words with the private texts, even in a simple disguise.

Source: assessment-spec/1: only ids, titles, levels, bands and remediation are ever shown.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from muniment.assessments.evaluation.language_model.prompt import MAX_REASON
from muniment.assessments.evaluation.words import collapse, fold, words_of

_RUN: Final = 4
"""Shared consecutive words that are not a coincidence."""
_LETTERS: Final = 24
"""Shared consecutive letters, ignoring spaces and punctuation, that are not a coincidence."""
_LETTERS_UNSPACED: Final = 10
_NOT_PLAIN: Final = re.compile(r"[<>`{}\[\]|\\]|://|\bwww\.|[!-~]{41,}")
"""Markup, URLs, and long runs without spaces, which could be encoded data."""
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})


def presentable(reason: str, private: Sequence[str], public: Sequence[str]) -> str:
    """Return *reason* as a report may show it, or "" to hide it; *public* texts can be seen by the reader anyway."""
    spaced = "".join(" " if character.isspace() else character for character in reason)
    shown = collapse("".join(each for each in spaced if unicodedata.category(each) not in _INVISIBLE))
    if _NOT_PLAIN.search(shown) or _repeats(shown, private, public):
        return ""
    if len(shown) > MAX_REASON:
        shown = shown[:MAX_REASON].rpartition(" ")[0] + " …"
    return shown


def _repeats(reason: str, private: Iterable[str], public: Sequence[str]) -> bool:
    reason_words, reason_letters = words_of(fold(reason)), _letters(reason)
    known_words, known_letters = [words_of(fold(text)) for text in public], [_letters(text) for text in public]
    for text in private:
        kept = words_of(fold(text))
        size = min(_RUN, len(kept))
        # A single word, such as "none" for the lowest level, is not confidential.
        if size > 1 and _runs(kept, size) & _runs(reason_words, size) - {
            run for words in known_words for run in _runs(words, size)
        }:
            return True
        squeezed = _letters(text)
        length = _LETTERS if squeezed.isascii() else _LETTERS_UNSPACED
        for turned in (squeezed, squeezed[::-1]):
            windows = {turned[at : at + length] for at in range(len(turned) - length + 1)}
            if any(
                window in reason_letters and not any(window in each for each in known_letters) for window in windows
            ):
                return True
    return False


def _runs(words: Sequence[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}


def _letters(text: str) -> str:
    return "".join(character for character in fold(text) if character.isalnum())
