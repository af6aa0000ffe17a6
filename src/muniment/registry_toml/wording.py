"""The declared word for a company in the texts of pages and mail."""

import gettext
import re
from functools import lru_cache
from typing import Final

from muniment.registry_toml.applied import current

_WORD: Final = re.compile(
    r"(?<![/\w(.{])(?:(?P<article>[Aa]n?) )?(?P<word>[Cc]ompan(?:y|ies)|[Oo]rganizations?)(?![\w)/=])"
)
"""The words in English texts, with their article; neither in an address nor as the name of a placeholder."""


def reworded(message: str) -> str:
    """Return an English text with the declared words for company and organization."""
    words = current().words
    if not words.company:
        return message
    return _reworded(message, words.company, words.companies or f"{words.company}s")


class DeclaredWords(gettext.NullTranslations):
    """
    The catalogue of English texts: each is its own translation, with the declared words.

    As the fallback of Django's English catalogue it is asked for every text of forms, templates, pages and mail.
    """

    def gettext(self, message: str) -> str:
        return reworded(message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return reworded(msgid1 if n == 1 else msgid2)


@lru_cache(maxsize=2048)
def _reworded(message: str, one: str, several: str) -> str:
    def replace(match: re.Match[str]) -> str:
        found = several if match["word"].endswith("s") else one
        if match["word"][0].isupper():
            found = found[0].upper() + found[1:]
        if not match["article"]:
            return found
        article = f"{match['article'][0]}n" if found[0].lower() in "aeiou" else match["article"][0]
        return f"{article} {found}"

    return _WORD.sub(replace, message)
