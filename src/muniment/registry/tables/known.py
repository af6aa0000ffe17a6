"""The companies and people that the registry has, to match the rows of a table with them by name."""

import unicodedata
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from muniment.kernel.ids import new_id, slug_from_name
from muniment.registry.models import Company, GivenSlug, Person

_SLUG_CHARACTERS: Final = 190


def name_key(name: str) -> str:
    """Return what two spellings of a name share: letters and digits without accents and signs."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(each for each in plain if each.isalnum())


@dataclass(slots=True)
class KnownRows:
    """
    The stored rows by name, and every slug that was ever given.

    Args:
        names: the names of the companies, by slug.
        people: those that no account owns: a name alone does not say that a row means an account's profile.
    """

    companies: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    people: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    names: dict[str, str] = field(default_factory=dict)
    used: dict[str, set[str]] = field(default_factory=lambda: {"company": set(), "person": set()})
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def read(cls) -> "KnownRows":
        found = cls()
        for slug, name in Company.objects.order_by("pk").values_list("slug", "name").iterator():
            found.companies[name_key(name)].append(slug)
            found.names[slug] = name
        people = Person.objects.filter(account=None).order_by("pk")
        for slug, name in people.values_list("slug", "name").iterator():
            found.people[name_key(name)].append(slug)
        for kind, slug in GivenSlug.objects.filter(kind__in=found.used).values_list("kind", "slug").iterator():
            found.used[kind].add(slug)
        return found

    def new_slug(self, kind: str, name: str) -> str:
        """Return a slug that was never given; slugs of erased people are, and the importer ignores their rows."""
        stem = slug_from_name(name)[:_SLUG_CHARACTERS].rstrip("-") or new_id()
        slug, number = stem, self._numbers.get((kind, stem), 1)
        while slug in self.used[kind]:
            number += 1
            slug = f"{stem}-{number}"
        self._numbers[kind, stem] = number
        self.used[kind].add(slug)
        return slug
