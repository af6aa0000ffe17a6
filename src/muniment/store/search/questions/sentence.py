"""A question divided into parts, and the ways to look around in it."""

from collections.abc import Sequence
from typing import NamedTuple

from muniment.store.search.questions.language import Language
from muniment.store.search.questions.phrases import Part
from muniment.store.search.questions.tokens import Token


class Sentence(NamedTuple):
    """The *parts* of a *text*, in order."""

    text: str
    tokens: Sequence[Token]
    parts: Sequence[Part]
    language: Language

    def has(self, at: int, *roles: str) -> bool:
        """Return whether there is a part at a place that has one of *roles*."""
        return 0 <= at < len(self.parts) and self.parts[at].has(*roles)

    def entry(self, at: int, role: str) -> str:
        """Return the entry of a part in the list *role*; empty if it is not in it."""
        return self.parts[at].roles.get(role, "") if 0 <= at < len(self.parts) else ""

    def noun(self, at: int) -> str:
        return self.entry(at, "noun") or self.entry(at, "one")

    def first_token(self, at: int) -> Token | None:
        return self.tokens[self.parts[at].start] if 0 <= at < len(self.parts) else None

    def after(self, at: int, *roles: str) -> int:
        """Return the first place from *at* on whose part has none of *roles*."""
        while self.has(at, *roles):
            at += 1
        return at

    def before(self, at: int, *roles: str) -> int:
        """Return the last place before *at* whose part has none of *roles*; -1 if there is none."""
        at -= 1
        while self.has(at, *roles):
            at -= 1
        return at

    def words(self, begin: int, end: int) -> str:
        """Return the text of the parts from *begin* to before *end*."""
        return self.text[self.tokens[self.parts[begin].start].start : self.tokens[self.parts[end - 1].end - 1].end]

    def closes(self, at: int) -> bool:
        """Return whether a comma follows a part."""
        return self.tokens[self.parts[at].end - 1].closes

    def any_noun(self, *nouns: str) -> bool:
        return any(part.roles.get(role) in nouns for part in self.parts for role in ("noun", "one"))
