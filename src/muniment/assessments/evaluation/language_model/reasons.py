"""
What of a model's reason may stand in a report.

A model that was talked into it could tell what it was told in confidence. Its reason is shown only when it
shares no run of words with the private texts, in plain or in simple disguise, and is plain text itself.

Source: assessment-spec/1: only ids, titles, levels, bands and remediation are ever shown.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from muniment.assessments.evaluation.language_model.prompt import MAX_REASON
from muniment.assessments.evaluation.words import collapse, fold, words_of

_RUN: Final = 4
"""Words in a row that are no accident."""
_LETTERS: Final = 24
"""Letters in a row, spaces and signs left out, that are no accident; in scripts without spaces fewer are."""
_LETTERS_UNSPACED: Final = 10
_NOT_PLAIN: Final = re.compile(r"[<>`{}\[\]|\\]|://|\bwww\.|[!-~]{41,}")
"""Markup, addresses, and runs without a space, in which something could be encoded."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})


def presentable(reason: str, private: Sequence[str], public: Sequence[str]) -> str:
    """
    Give *reason* as a report may show it, empty when it may not.

    Args:
        private: texts that it must not repeat.
        public: texts that the reader has anyway; what stands there is no secret.
    """
    spaced = "".join(" " if character.isspace() else character for character in reason)
    shown = collapse("".join(each for each in spaced if unicodedata.category(each) not in _UNSEEN))
    if _NOT_PLAIN.search(shown) or _repeats(shown, private, public):
        return ""
    if len(shown) > MAX_REASON:
        shown = shown[:MAX_REASON].rpartition(" ")[0] + " …"
    return shown


def _repeats(reason: str, private: Iterable[str], public: Sequence[str]) -> bool:
    said, letters = words_of(fold(reason)), _letters(reason)
    known_words, known_letters = [words_of(fold(text)) for text in public], [_letters(text) for text in public]
    for text in private:
        kept = words_of(fold(text))
        size = min(_RUN, len(kept))
        # One word by itself, such as "none" for the lowest level, is a word of the language.
        if size > 1 and _runs(kept, size) & _runs(said, size) - {
            run for words in known_words for run in _runs(words, size)
        }:
            return True
        squeezed = _letters(text)
        length = _LETTERS if squeezed.isascii() else _LETTERS_UNSPACED
        for turned in (squeezed, squeezed[::-1]):
            windows = {turned[at : at + length] for at in range(len(turned) - length + 1)}
            if any(window in letters and not any(window in each for each in known_letters) for window in windows):
                return True
    return False


def _runs(words: Sequence[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}


def _letters(text: str) -> str:
    return "".join(character for character in fold(text) if character.isalnum())
