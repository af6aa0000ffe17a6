"""
Statements for questions that search cannot answer: which of a few common ones is near, with the names that it contains.

A statement is a proposal that an agent reads and changes, so that a few words decide; no question is answered by it.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from muniment.registry_toml.queries import COMPANIES_BY_COUNTRY
from muniment.schema.company_parts import PROPOSAL_STATUSES, SOCIALS
from muniment.store.search_text import pieces

_NETWORKS: Final = {each.name.partition("_")[0]: each.name for each in SOCIALS.fields}
_GROUPS: Final = {"type": "type", "industry": "industry", "status": "status", "country": "country", "state": "state"}
_MOST: Final = frozenset({"most", "top", "largest", "biggest"})
_SUMS: Final = frozenset({"average", "avg", "mean", "total", "sum", "median", "combined"})
_VOTES: Final = frozenset({"vote", "votes", "voting", "proposal", "proposals", "ballot", "ballots"})
_PEOPLE: Final = frozenset({"who", "people", "person", "persons", "team", "teams", "member", "members", "position"})
_PEOPLE_AND_POSITIONS: Final = _PEOPLE | {"positions"}
_COMPANIES: Final = frozenset({"company", "companies", "organization", "organizations", "dao", "daos", "everything"})
_LITTLE: Final = frozenset(
    {
        *("a", "all", "an", "and", "any", "are", "as", "at", "be", "both", "by", "do", "does", "each", "find", "for"),
        *("from", "get", "give", "had", "has", "have", "how", "in", "is", "it", "its", "list", "lists", "many", "me"),
        *("now", "of", "on", "or", "right", "show", "that", "the", "their", "them", "there", "this", "three", "to"),
        *("two", "was", "were", "what", "when", "where", "which", "who", "whose", "with", "work", "works", "five"),
        *("number", "count", "name", "names", "open", "every", "between", "more", "than", "least", "per"),
    }
)
COMMON: Final = (
    _LITTLE | _MOST | _SUMS | _VOTES | _PEOPLE_AND_POSITIONS | _COMPANIES | {*_GROUPS, "types", "treasury", "holders"}
)
"""Words that ask, and names of what the registry has: a text that has only these of a question does not answer it."""


class _Question(NamedTuple):
    """The words of a question, those of them in lower case, and the companies that it names."""

    words: frozenset[str]
    companies: Sequence[str]

    def has(self, *any_of: str) -> bool:
        return not self.words.isdisjoint(any_of)

    @property
    def within(self) -> str:
        """The condition that a row is of one of the companies."""
        return f"company IN ({', '.join(_text(each) for each in self.companies)})"


def is_only_common(question: str) -> bool:
    """Return whether a question of several words has no word that could name or describe something."""
    words = pieces(question)
    return len(words) > 1 and COMMON.issuperset(words)


def near_statement(question: str, companies: Sequence[str] = ()) -> str:
    """
    Return a statement that would answer a question, or nearly; an empty text where none is near.

    Args:
        companies: the slugs of those that it names.
    """
    asked = _Question(frozenset(pieces(question)), companies)
    for statement in (_of_votes, _of_people, _of_holders, _of_similar, _of_networks, _of_sums, _of_places, _of_groups):
        found = statement(asked)
        if found:
            return found
    return ""


def _of_votes(asked: _Question) -> str:
    if not asked.has(*_VOTES):
        return ""
    conditions = [asked.within] if asked.companies else []
    status = next((each for each in PROPOSAL_STATUSES if each in asked.words), "")
    if not status and asked.has("open", "now", "running", "current"):
        status = "active"
    if status:
        conditions.append(f"status = {_text(status)}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    columns = "company, title, status, votes_for, votes_against, end_date"
    return f"SELECT {columns} FROM proposals{where} ORDER BY end_date DESC"


def _of_people(asked: _Question) -> str:
    if len(asked.companies) > 1 and asked.has(*_PEOPLE, "both", "works", "work"):
        return (
            f"SELECT person, person_name, group_concat(company) AS companies FROM positions WHERE {asked.within}"
            " GROUP BY person, person_name HAVING count(DISTINCT company) > 1"
        )
    if asked.has(*_PEOPLE_AND_POSITIONS) and asked.has(*_MOST):
        return (
            "SELECT person, person_name, count(*) AS positions FROM positions WHERE person IS NOT NULL"
            " GROUP BY person ORDER BY 3 DESC LIMIT 10"
        )
    return ""


def _of_holders(asked: _Question) -> str:
    if not asked.has("holder", "holders", "shareholders", "owners", "tokens"):
        return ""
    where = f" WHERE {asked.within}" if asked.companies else ""
    return f"SELECT company, name, address, tokens, percentage FROM holders{where} ORDER BY percentage DESC LIMIT 5"


def _of_similar(asked: _Question) -> str:
    if not asked.companies or not asked.has("similar", "like", "alike", "comparable", "alternatives"):
        return ""
    own = _text(asked.companies[0])
    return (
        f"SELECT other.company, count(*) AS shared FROM themes own JOIN themes other USING (theme)"
        f" WHERE own.company = {own} AND other.company <> {own} GROUP BY 1 ORDER BY 2 DESC LIMIT 5"
    )


def _of_networks(asked: _Question) -> str:
    network = next((name for word, name in _NETWORKS.items() if word in asked.words), "")
    return f"SELECT company, value FROM socials WHERE network = {_text(network)}" if network else ""


def _of_sums(asked: _Question) -> str:
    if not asked.has("treasury", "treasuries") or not asked.has(*_SUMS):
        return ""
    group = next((column for word, column in _GROUPS.items() if word in asked.words), "state")
    # An amount with a note is something else, such as a sum of grants.
    return (
        f"SELECT {group}, count(treasury) AS companies, avg(treasury) AS average, sum(treasury) AS total"
        f" FROM companies WHERE treasury_note IS NULL GROUP BY {group} ORDER BY 3 DESC"
    )


def _of_places(asked: _Question) -> str:
    """Return the statement of a place: the words that say nothing else are its name."""
    named = [word for word in sorted(asked.words) if word not in COMMON]
    if asked.companies or len(named) != 1 or not asked.has("in", "at", "from"):
        return ""
    place = _text(f"%{named[0]}%")
    condition = f"city LIKE {place} OR state LIKE {place}"
    if asked.has(*_PEOPLE):
        return (
            "SELECT positions.person, positions.person_name, positions.company FROM positions"
            f" JOIN addresses USING (company) WHERE {condition}"
        )
    return f"SELECT company, city, state, country FROM addresses WHERE {condition}"


def _of_groups(asked: _Question) -> str:
    group = next((column for word, column in _GROUPS.items() if {word, f"{word}s"} & asked.words), "")
    if group == "country" and asked.has(*_COMPANIES):
        return COMPANIES_BY_COUNTRY
    if group and asked.has(*_COMPANIES):
        return f"SELECT {group}, count(*) AS companies FROM companies GROUP BY {group} ORDER BY 2 DESC"
    if asked.has("how", "number", "count") and asked.has(*_COMPANIES):
        return "SELECT count(*) AS companies FROM companies"
    return ""


def _text(value: str) -> str:
    """Return *value* as a text of SQL."""
    return "'" + re.sub("'", "''", value) + "'"
