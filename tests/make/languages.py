"""
A right-to-left pseudo-language: every message in Arabic letters, longer than the English one, in brackets.

A text on a page with Latin words is then either data or a text that escaped translation.
"""

import re
from pathlib import Path

import polib

from muniment.languages.catalogues import SHIPPED

CODE = "ar"
"""Django and django-allauth ship Arabic, so their own messages are translated too."""
OPEN, CLOSE = "⟦", "⟧"
_KEPT = re.compile(
    r"%\(\w+\)[a-z]|%[sdif]|%%|\{\w*[^{}]*\}|<[^<>]+>|&#?\w+;|https?://[^\s<>]+|(?:GET )?/[a-z][\w/{}.-]*"
)
_LETTERS = dict(zip("abcdefghijklmnopqrstuvwxyz", "ابجدهفقحيزكلمنعصضرستثوغخذظ", strict=True))


def pseudo(text: str) -> str:
    """Return *text* in the pseudo-language; placeholders, markup and addresses stay."""
    parts, end = [], 0
    for kept in _KEPT.finditer(text):
        parts += [_spoken(text[end : kept.start()]), kept[0]]
        end = kept.end()
    spoken = "".join([*parts, _spoken(text[end:])])
    before, after = re.match(r"\s*", spoken)[0], re.search(r"\s*$", spoken)[0]
    body = spoken[len(before) : len(spoken) - len(after) or None]
    return f"{before}{OPEN}{body}{CLOSE}{after}" if body else spoken


def _spoken(text: str) -> str:
    """Return words in Arabic letters, a third longer by a stroke that lengthens."""
    return re.sub(r"[A-Za-z]+", lambda word: _word(word[0]), text)


def _word(word: str) -> str:
    letters = "".join(_LETTERS[each] for each in word.lower())
    return f"{letters[:1]}{'ـ' * (len(word) // 3)}{letters[1:]}"


def write_pseudo(site: Path) -> None:
    """Write the pseudo-catalogue as an operator's, with the messages of the German one."""
    found = polib.pofile(str(SHIPPED / "de" / "LC_MESSAGES" / "django.po"))
    found.metadata["Language"] = CODE
    found.metadata["Plural-Forms"] = "nplurals=2; plural=(n != 1);"
    for entry in found:
        if entry.msgid_plural:
            entry.msgstr_plural = {0: pseudo(entry.msgid), 1: pseudo(entry.msgid_plural)}
        else:
            entry.msgstr = pseudo(entry.msgid)
    place = site / "locale" / CODE / "LC_MESSAGES" / "django.po"
    place.parent.mkdir(parents=True)
    place.write_text(f"{found}\n", "utf-8")
