"""Whether rows are public, and were when they were last published."""

from collections.abc import Iterator

from muniment.registry.models import Framework, State
from muniment.registry.sql import marks, rows

Standing = tuple[int, str, bool, bool, int | None]
"""A row: its key and slug, whether it is public and was public before, its publication number."""


def companies(keys: list[int]) -> Iterator[Standing]:
    statement = "SELECT id, slug, state, published, publication_number FROM registry_company"
    for pk, slug, state, was_public, number in rows(f"{statement} WHERE id IN ({marks(keys)})", keys):
        yield pk, slug, state == State.PUBLISHED, was_public, number


def people(keys: list[int]) -> Iterator[Standing]:
    places = (
        "SELECT 1 FROM registry_position place JOIN registry_company company ON company.id = place.company_id"
        " WHERE place.person_id = person.id AND company.state = %s"
    )
    for pk, slug, listed, unlisted_by, was_public, number, is_named in rows(
        "SELECT id, slug, listed, unlisted_by, published, publication_number,"
        f" EXISTS ({places}) FROM registry_person person WHERE id IN ({marks(keys)})",
        [State.PUBLISHED.value, *keys],
    ):
        yield pk, slug, not unlisted_by and bool(listed or is_named), was_public, number


def frameworks(keys: list[int]) -> Iterator[Standing]:
    found = Framework.objects.filter(pk__in=keys)
    for pk, slug, kind, listed, was_public, number, state in found.values_list(
        "pk", "slug", "kind", "listed", "published", "publication_number", "company__state"
    ):
        public = listed and (kind == Framework.Kind.SCORE or state == State.PUBLISHED)
        yield pk, slug, public, was_public, number
