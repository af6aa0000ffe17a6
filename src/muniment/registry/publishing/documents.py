"""
Load the rows of companies, people and frameworks, and render their documents.

Companies and frameworks show the published scores of reports.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cache, partial
from itertools import islice
from typing import Any, Final

import msgspec
from django.conf import settings
from django.db import connection, models
from django.db.models import Case, Count, F, When

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import number, summary_path, timestamp
from muniment.registry import provenance
from muniment.registry.company.parts import RoundRow
from muniment.registry.fields import JSONText, marks, rows
from muniment.registry.models import Company, DomainProof, Framework, FrameworkSpecification, Person, Score, State
from muniment.registry.publishing.rendering import (
    CompanyView,
    FrameworkScores,
    PlaceView,
    company_document,
    company_reference,
    framework_document,
    person_document,
    position_in_company,
)
from muniment.schema.framework import TOP_SCORES
from muniment.store.published_document import PublishedDocument

CHUNK: Final = 500
_COMPANIES: Final = """
SELECT company.*,
    EXISTS (SELECT 1 FROM registry_ownership owner WHERE owner.company_id = company.id) AS has_owner,
    (SELECT proof.id FROM registry_domainproof proof
        JOIN registry_ownership owner ON owner.company_id = proof.company_id AND owner.account_id = proof.account_id
        WHERE proof.company_id = company.id AND proof.state = 'verified' AND proof.website = company.website
        ORDER BY proof.verified_at DESC, proof.id DESC LIMIT 1) AS proof_id,
    (SELECT logo.digest FROM registry_fetchedlogo logo
        WHERE logo.company_id = company.id AND logo.source = company.icon) AS logo_digest,
    EXISTS (SELECT 1 FROM registry_score score WHERE score.company_id = company.id) AS has_scores
FROM registry_company company"""
"""Companies with their owners' latest proof of the present website and the fetched logo; whether they have an owner and
scores."""
_PLACES_OF_PEOPLE: Final = """
SELECT place.person_id, place.title, place.extra, place.item_id, company.provenance, company.slug, company.name,
    company.symbol, company.icon,
    (SELECT logo.digest FROM registry_fetchedlogo logo
        WHERE logo.company_id = company.id AND logo.source = company.icon) AS logo_digest
FROM registry_position place CROSS JOIN registry_company company
WHERE company.id = place.company_id AND company.state = %s"""
"""
Positions of people in published companies, with the companies' fetched logos.

CROSS JOIN begins with the positions of the people: SQLite would begin with all published companies.
"""
_LATEST_FIRST: Final = "company.listed_on DESC NULLS LAST, company.publication_number DESC NULLS LAST"
TABLES: Final[dict[str, type[models.Model]]] = {"company": Company, "person": Person, "framework": Framework}


def all_documents(told: Callable[[int], object] = lambda _: None) -> Iterator[PublishedDocument]:
    """Render every public document, in the order of publication; *told* gets the number rendered so far, by chunk."""
    done = 0
    for kind, model in TABLES.items():
        public = model._default_manager.filter(published=True).order_by("publication_number")  # noqa: SLF001 - Django's public name
        keys = iter(list(public.values_list("pk", flat=True)))
        while chunk := list(islice(keys, CHUNK)):
            told(done)
            documents = render(kind, chunk)
            done += len(chunk)
            for key in chunk:  # in the order of publication, which the statements of a chunk do not keep
                yield documents[key]


def render(kind: str, keys: list[int], loaded: dict[int, CompanyView] | None = None) -> dict[int, PublishedDocument]:
    """Render rows of one kind, by primary key; *loaded* receives the views of companies."""
    match kind:
        case "company":
            return company_documents(keys, loaded)
        case "person":
            return person_documents(keys)
        case _:
            return framework_documents(keys)


_PLACES_OF_COMPANIES: Final = """
SELECT place.company_id, place.rank, place.item_id, place.title, place.extra,
    CASE person.unlisted_by WHEN '' THEN person.slug ELSE '' END, COALESCE(person.name, place.name), person.provenance
FROM registry_position place LEFT JOIN registry_person person ON person.id = place.person_id"""
_TABLES_OF_LISTS: Final = {
    "positions": "registry_position",
    "proposals": "registry_proposal",
    "capTable": "registry_captableentry",
}
_LIST_CHUNK: Final = 5_000
NONE_LEFT_OUT: Final[Mapping[str, Collection[int]]] = {}


def _day(stored: date | str | None) -> date | None:
    """Return a day as a date; SQLite stores it as text."""
    return None if stored is None else date.fromisoformat(str(stored))


def company_views(keys: list[int], without: Mapping[str, Collection[int]] = NONE_LEFT_OUT) -> dict[int, CompanyView]:
    """
    Load the data of companies' documents, by primary key.

    Args:
        without: the companies of which a list is not loaded, by its name on the wire.
    """
    if not keys:
        return {}
    views: dict[int, CompanyView] = {}
    for columns in _stored(Company, f"{_COMPANIES} WHERE company.id IN ({marks(keys)})", keys):
        views[columns["id"]] = CompanyView(columns, has_owner=bool(columns["has_owner"]))
    of_these = f"WHERE company_id IN ({marks(keys)}) ORDER BY company_id, rank"
    conditions = dict.fromkeys(_TABLES_OF_LISTS, (of_these, keys))
    for member, left_out in without.items():
        if left_out:
            conditions[member] = _of_others(keys, left_out)
    condition, chosen = conditions["positions"]
    for company, _, *place in rows(f"{_PLACES_OF_COMPANIES} {condition}", chosen):
        views[company].positions.append(_place(place))
    # Proposals and holders stay encoded: a company has thousands, and answers show them as they are stored.
    condition, chosen = conditions["proposals"]
    for company, text in rows(f"SELECT company_id, document FROM registry_proposal {condition}", chosen):
        views[company].proposals.append(msgspec.Raw(text.encode()))
    condition, chosen = conditions["capTable"]
    for company, text in rows(f"SELECT company_id, document FROM registry_captableentry {condition}", chosen):
        views[company].cap_table.append(msgspec.Raw(text.encode()))
    for company, item, public, name, target, *days in rows(
        "SELECT company_id, item_id, public, name, target_minor, opened_on, closed_on"
        f" FROM registry_fundinground {of_these}",
        keys,
    ):
        opened, closed = map(_day, days)
        views[company].rounds.append(RoundRow(name, target, opened, closed, item, bool(public)))
    _add_proofs(views)
    with_scores = [pk for pk, view in views.items() if view.columns["has_scores"]]
    for pk, assessments in assessments_of(with_scores).items():
        views[pk].assessments = assessments
    return views


def _of_others(keys: list[int], left_out: Collection[int]) -> tuple[str, list[int]]:
    """Return the condition for the lists of the other companies, and its parameters."""
    others = [key for key in keys if key not in left_out]
    if not others:
        return "WHERE 1 = 0", []
    return f"WHERE company_id IN ({marks(others)}) ORDER BY company_id, rank", others


def _place(columns: Sequence[Any]) -> PlaceView:
    """Return a position; the columns are those of the statement after its rank."""
    item, title, extra, slug, name, origin = columns
    additional = msgspec.json.decode(extra)
    return PlaceView(title, additional, slug, name, item_id=item, owned_on=_owned_on(origin, "name"))


def companies_with_long_lists(keys: list[int], most: int) -> dict[str, set[int]]:
    """Return the companies whose list has more than *most* rows, by its name on the wire."""
    found = {}
    for member, table in _TABLES_OF_LISTS.items():
        counted = rows(
            f"SELECT company_id FROM {table} WHERE company_id IN ({marks(keys)})"
            " GROUP BY company_id HAVING COUNT(*) > %s",
            [*keys, most],
        )
        found[member] = {key for (key,) in counted}
    return found


def rows_of_list(member: str, company: int) -> Iterator[Any]:
    """Yield the rows of a company's list as its document has them, in bounded memory."""
    is_of_people = member == "positions"
    statement = _PLACES_OF_COMPANIES
    if not is_of_people:
        statement = f"SELECT company_id, rank, document FROM {_TABLES_OF_LISTS[member]}"
    last_rank = -1
    while True:
        chunk = rows(
            f"{statement} WHERE company_id = %s AND rank > %s ORDER BY rank LIMIT %s",
            [company, last_rank, _LIST_CHUNK],
        )
        for _, last_rank, *columns in chunk:  # noqa: B007 - the next rows are after the last one
            if is_of_people:
                yield position_in_company(_place(columns))
            else:
                yield msgspec.Raw(columns[0].encode())
        if len(chunk) < _LIST_CHUNK:
            return


def _owned_on(stored: str | None, name: str, item: str = "") -> str:
    """Return the day on which an owner changed a text, or a row of a list, that still waits for a review; else ""."""
    if not stored or '"owner"' not in stored:  # which spares most rows the decoding
        return ""
    return provenance.owned_on(msgspec.json.decode(stored), name, item)


def _add_proofs(views: dict[int, CompanyView]) -> None:
    by_proof = {view.columns["proof_id"]: view for view in views.values() if view.columns["proof_id"]}
    if not by_proof:
        return
    for proof in DomainProof.objects.filter(pk__in=by_proof):
        assert proof.verified_at is not None  # noqa: S101 - it is verified
        by_proof[proof.pk].verified_domain = {
            "domain": proof.domain,
            "method": proof.method,
            "verifiedAt": timestamp(proof.verified_at),
        }


def company_documents(keys: list[int], loaded: dict[int, CompanyView] | None) -> dict[int, PublishedDocument]:
    views = company_views(keys)
    if loaded is not None:
        loaded.update(views)
    return {pk: company_document(view, settings.SCHEMA) for pk, view in views.items()}


def person_documents(keys: list[int]) -> dict[int, PublishedDocument]:
    if not keys:
        return {}
    chosen = marks(keys)
    places: dict[int, list[PlaceView]] = defaultdict(list)
    for person, title, extra, item, origin, slug, name, symbol, icon, digest in rows(
        f"{_PLACES_OF_PEOPLE} AND place.person_id IN ({chosen}) ORDER BY place.person_id, {_LATEST_FIRST}, place.rank",
        [State.PUBLISHED.value, *keys],
    ):
        company = company_reference({"slug": slug, "name": name, "symbol": symbol, "icon": icon}, digest)
        owned_on = _owned_on(origin, "positions", item)
        places[person].append(PlaceView(title, msgspec.json.decode(extra), company=company, owned_on=owned_on))
    people = _stored(Person, f"SELECT * FROM registry_person WHERE id IN ({chosen})", keys)
    return {row["id"]: person_document(row, places.get(row["id"], ()), settings.SCHEMA) for row in people}


def framework_documents(keys: list[int]) -> dict[int, PublishedDocument]:
    frameworks: Any = list(Framework.objects.filter(pk__in=keys).values())
    # An unlisted company is not shown, although its framework refers to it.
    public = Company.objects.filter(pk__in=[row["company_id"] for row in frameworks], state=State.PUBLISHED)
    columns = ("id", "slug", "name", "symbol", "icon", "description", "provenance", "logo_digest")
    companies: Any = {row["id"]: row for row in public.annotate(logo_digest=fetched_logo()).values(*columns)}
    authored = set(FrameworkSpecification.objects.filter(framework_id__in=keys).values_list("framework_id", flat=True))
    counts = counts_of(keys)
    documents = {}
    for row in frameworks:
        key = row["id"]
        company = companies.get(row["company_id"])
        scores = FrameworkScores(counts[key], best_of(key)) if key in counts else None
        documents[key] = framework_document(row, company, settings.SCHEMA, authored=key in authored, scores=scores)
    return documents


def assessments_of(companies: Iterable[int]) -> dict[int, list[JSONObject]]:
    """Return the published scores of companies by public frameworks, the latest report first."""
    by_company: dict[int, list[JSONObject]] = defaultdict(list)
    keys = list(companies)
    if not keys:
        return by_company
    public = Score.objects.filter(company_id__in=keys, framework__published=True)
    of_others = ("company_id", "company__slug", "framework__slug", "framework__name")
    for row in public.order_by("-assessed_at", "framework__slug").values(*of_others, *_COLUMNS):
        framework_id = row["framework__slug"]
        assessment = {
            "frameworkId": framework_id,
            "frameworkName": row["framework__name"],
            **_shown(row, row["company__slug"], framework_id),
            "specificationVersion": row["specification_version"],
            "evaluator": _evaluator(row),
        }
        if row["sections"] is not None:
            assessment["sections"] = row["sections"]
        by_company[row["company_id"]].append(assessment)
    return by_company


def _evaluator(row: JSONObject) -> str:
    if row["evaluator"]:
        return "plugin"
    return "model" if row["model"] else "rules"


def frameworks_showing(companies: Sequence[int]) -> list[int]:
    """Return the frameworks of *companies* and those that they have a score of, in the order of publication."""
    if not companies:
        return []
    asked = marks(companies)
    found = rows(
        f"SELECT id, publication_number FROM registry_framework WHERE company_id IN ({asked})"
        " UNION SELECT framework.id, framework.publication_number FROM registry_framework framework"
        f" JOIN registry_score score ON score.framework_id = framework.id WHERE score.company_id IN ({asked})"
        " ORDER BY publication_number, id",
        [*companies, *companies],
    )
    return [key for key, _ in found]


def companies_with(frameworks: Iterable[int]) -> list[int]:
    """Return the companies that show a score of one of *frameworks*, dated like the change of these."""
    scores = Score.objects.filter(framework_id__in=list(frameworks)).order_by("pk")
    keys = list(scores.values_list("company_id", flat=True))
    Company.objects.filter(pk__in=keys).update(updated_at=now())
    return keys


def counts_of(frameworks: Iterable[int]) -> dict[int, int]:
    """Return how many public companies have published their score, by framework."""
    found = _public().filter(framework_id__in=list(frameworks)).order_by().values_list("framework_id")
    return dict(found.annotate(n=Count("pk")))


def best_of(framework: int) -> list[JSONObject]:
    """Return the best scores of a framework, in the order of the list of all."""
    newest = [F(f"company__{column}").desc(nulls_last=True) for column in ("listed_on", "publication_number")]
    of_company = [f"company__{column}" for column in ("slug", "name", "symbol", "icon")]
    public = _public().filter(framework_id=framework).annotate(company__logo_digest=fetched_logo("company__"))
    of_company.append("company__logo_digest")
    found = public.order_by("-score", *newest)
    ranked: list[JSONObject] = []
    for place, row in enumerate(found.values("framework__slug", *of_company, *_COLUMNS)[:TOP_SCORES], 1):
        score = _shown(row, row["company__slug"], row["framework__slug"])
        rank = place
        if ranked and ranked[-1]["score"] == score["score"]:
            rank = ranked[-1]["rank"]  # equal scores share the rank of the first of them
        company = {name.removeprefix("company__"): row[name] for name in of_company}
        ranked.append({"rank": rank, "company": company, **score})
    return ranked


_COLUMNS = (
    *("score", "grade", "assessed_at", "previous_score", "previous_at"),
    *("specification_version", "model", "evaluator", "sections"),
)


def _public() -> Any:
    return Score.objects.filter(company__state=State.PUBLISHED)


def _shown(row: JSONObject, company: str, framework_id: str) -> JSONObject:
    """Return the members of a score that companies and frameworks share; empty ones are left out."""
    members = {
        "score": number(row["score"]),
        "grade": row["grade"] or None,
        "assessedAt": timestamp(row["assessed_at"]),
        "previousScore": None if row["previous_score"] is None else number(row["previous_score"]),
        "previousAssessedAt": _moment(row["previous_at"]),
        "url": summary_path(company, framework_id),
    }
    return {name: value for name, value in members.items() if value is not None}


def _moment(at: datetime | None) -> str | None:
    return timestamp(at) if at else None


def fetched_logo(to_company: str = "") -> Case:
    """
    Return the digest of the logo that was fetched from the URL which a company names now; else NULL.

    Args:
        to_company: the path from the table of the query, such as ``company__``.
    """
    is_current = {f"{to_company}fetched_logo__source": F(f"{to_company}icon")}
    return Case(When(**is_current, then=F(f"{to_company}fetched_logo__digest")), default=None)


_Convert = Callable[[Any], Any]


def _stored(model: type[models.Model], statement: str, parameters: Sequence[Any]) -> Iterator[JSONObject]:
    """
    Return rows of *model*'s table by column, with values as the model has them; other columns as they come.

    The ORM reads them too, but takes 0.2 ms to compose a query, and many changes need these rows.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        names = tuple(each[0] for each in cursor.description)
        found = cursor.fetchall()
    converted = _conversions(model, names, connection.vendor)
    for row in found:
        values = dict(zip(names, row, strict=True))
        for name, convert in converted:
            if values[name] is not None:
                values[name] = convert(values[name])
        yield values


@cache
def _conversions(model: type[models.Model], names: tuple[str, ...], vendor: str) -> tuple[tuple[str, _Convert], ...]:
    """Return what turns stored values into those of the model, as the ORM does on databases of this *vendor*."""
    meta = model._meta  # noqa: SLF001 - Django's public name
    fields = {field.column: field for field in meta.concrete_fields}
    conversions: list[tuple[str, _Convert]] = []
    for name in names:
        field = fields.get(name)
        # Without Django's converters, which are called with a connection and a column for each value.
        if isinstance(field, JSONText):
            conversions.append((name, msgspec.json.decode))
        elif vendor == "sqlite" and isinstance(field, models.DateTimeField):
            conversions.append((name, _aware))
        elif field:
            column = field.get_col(meta.db_table)
            for converter in (*connection.ops.get_db_converters(column), *field.get_db_converters(connection)):
                conversions.append((name, partial(_convert, converter, column)))
    return tuple(conversions)


def _convert(converter: Callable[[Any, Any, Any], Any], column: Any, value: Any) -> Any:
    return converter(value, column, connection)


def _aware(stored: datetime) -> datetime:
    """Return a moment that SQLite stores: that of UTC, without a zone."""
    return stored.replace(tzinfo=UTC)
