"""
The public documents of companies, people and frameworks: load their rows, and render them.

A row and what belongs to it are loaded as a view. Rendering a view reads nothing more: the contract's keys come first,
in its order, then our additions (``treasuryAmount`` to ``updatedAt``), then additional members of open objects, sorted.
Companies and frameworks show the published scores of reports.

Source: service document, Resources; decisions, section 2, absent values.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db import models
from django.db.models import Case, Count, F, When

from muniment.kernel.ids import now
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.wire import PICTURE_PATH, number, summary_path, timestamp
from muniment.registry import provenance
from muniment.registry.company.parts import RoundRow
from muniment.registry.fields import marks, rows, stored_rows
from muniment.registry.models import Company, DomainProof, Framework, FrameworkSpecification, Person, Score, State
from muniment.registry.names import former
from muniment.schema.company import TREASURY_NOTE
from muniment.schema.company_parts import person_key
from muniment.schema.filters import Listing, values_at
from muniment.schema.framework import TOP_SCORES
from muniment.schema.kinds import Country, Items, country_names
from muniment.schema.objects import Schema
from muniment.schema.places import Place, places_of
from muniment.schema.record import Record
from muniment.store.lists.highlights import PLACED, VOTES_END
from muniment.store.lists.scores import FACET, written
from muniment.store.published_document import PublishedDocument
from muniment.store.search.text_index import SearchTexts
from muniment.store.search.values import BOUND, KEY
from muniment.store.search_text import SITE, SYMBOL, handle_of, host_of, marked

_encode = msgspec.json.Encoder().encode
LOGO_SIDE: Final = 512
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(slots=True)
class CompanyView:
    """
    The data of a company's documents. ``proposals`` and ``cap_table`` are encoded JSON.

    Args:
        shown: the company's object, once :func:`company_object` has rendered it.
        places: where its addresses are, from then on.
    """

    columns: JSONObject
    positions: list["PlaceView"] = field(default_factory=list)
    proposals: list[msgspec.Raw] = field(default_factory=list)
    cap_table: list[msgspec.Raw] = field(default_factory=list)
    rounds: list[RoundRow] = field(default_factory=list)
    has_owner: bool = False
    verified_domain: JSONObject | None = None
    assessments: list[JSONObject] = field(default_factory=list)
    shown: JSONObject | None = None
    places: list[Place] = field(default_factory=list)

    @property
    def people(self) -> int:
        """Return how many different people the positions name."""
        return len({person_key(place.person_slug, place.person_name) for place in self.positions})

    @property
    def raising(self) -> bool:
        """Return whether a funding round is open today, in UTC."""
        return any(funding_round.is_open(now().date()) for funding_round in self.rounds)


@dataclass(slots=True)
class PlaceView:
    """
    A position with both ends; a document omits its own end.

    Args:
        owned_on: the day on which an owner changed the text of the other end, if it has not been reviewed since.
    """

    title: str | None
    extra: JSONObject
    person_slug: str = ""
    person_name: str = ""
    company: JSONObject | None = None
    item_id: str = ""
    owned_on: str = ""


class FrameworkScores(NamedTuple):
    """The number of companies that have published their score of a framework, and the best of them with their rows."""

    total: int
    best: list[JSONObject]


# ---------------------------------------------------------------- the rows

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
    for columns in stored_rows(Company, f"{_COMPANIES} WHERE company.id IN ({marks(keys)})", keys):
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
    people = stored_rows(Person, f"SELECT * FROM registry_person WHERE id IN ({chosen})", keys)
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


# ---------------------------------------------------------------- what is shown of them


def position_of(listed_on: date | None, publication_number: int) -> int:
    """Return the sort position within a kind: by listing date, also one in the future, then by publication."""
    day = listed_on.toordinal() if listed_on else 0
    # One number, so that an index of one column has the order: the day above 40 bits for the publication.
    return day << 40 | publication_number


def shown_logo(icon: str, fetched_digest: str | None) -> JSONObject | None:
    """
    Return the wire form of a company's logo; None if no picture of it is stored here.

    Args:
        icon: the path of an uploaded logo, or the URL that the source gave.
        fetched_digest: the digest of the picture that was fetched from *icon*.
    """
    uploaded = PICTURE_PATH.fullmatch(icon)
    digest = uploaded["digest"] if uploaded else fetched_digest
    if not digest:
        return None
    return {"url": f"/pictures/{digest}-{LOGO_SIDE}.webp", "width": LOGO_SIDE, "height": LOGO_SIDE}


def public_former_names(stored: Any) -> list[JSONObject] | None:
    """Return the former names that no side hides, as answers show them, the latest first; None if there are none."""
    names = []
    for former_name in stored or ():
        if former.HIDDEN in former_name:
            continue
        names.append({member: former_name[member] for member in former.MEMBERS if former_name.get(member)})
    return names or None


def company_reference(columns: JSONObject, fetched_logo: str | None = None) -> JSONObject:
    """Return a company as people and frameworks refer to it, with the digest of its fetched logo."""
    slug = columns["slug"]
    reference = {"id": slug, "name": columns["name"], "slug": slug}
    for name in ("symbol", "icon"):
        if columns[name]:
            reference[name] = columns[name]
    logo = shown_logo(columns["icon"], fetched_logo)
    if logo:
        reference["logo"] = logo
    return reference


def company_object(view: CompanyView, schema: Schema) -> JSONObject:
    """Return the ``company`` of a bundle, rendered once for each view: an update publishes it and answers with it."""
    if view.shown is not None:
        return view.shown
    row = view.columns
    view.places = places_of(row["address"]) if row["address"] else []
    derived_countries = list(dict.fromkeys(place.derived for place in view.places if place.derived))
    derived = {
        # A stored size is that of a team of which no position is listed.
        "teamSize": view.people or row["team_size"],
        "raising": view.raising,
        "maintainedByOwner": view.has_owner,
        "logo": shown_logo(row["icon"], row.get("logo_digest")),
        "formerNames": public_former_names(row["former_names"]),
        "verifiedDomain": view.verified_domain,
        "assessments": view.assessments or None,
        "derivedCountries": derived_countries or None,
    }
    if row["listed_month_only"]:
        derived["listedAt"] = None  # createdAt shows the month, of which the stored day is only the first
    view.shown = schema.company.published(row, derived)
    return view.shown


def company_bundle(view: CompanyView, company: Any, schema: Schema) -> JSONObject:
    """Return the ``data`` of the detail endpoint. *company* is the finished object."""
    return {
        "company": company,
        "distribution": view.columns["distribution"],
        "proposals": view.proposals,
        "positions": [position_in_company(place) for place in view.positions],
        "capTable": view.cap_table,
        "fundingRounds": [funding_round.to_public(schema.funding_round) for funding_round in view.rounds],
    }


def company_line(view: CompanyView, company: JSONObject, schema: Schema) -> JSONObject:
    """Return the bundle with the whole of every funding round, for exports and for owners."""
    rounds = [funding_round.to_document(schema.funding_round) for funding_round in view.rounds]
    return {**company_bundle(view, company, schema), "fundingRounds": rounds}


def position_in_company(place: PlaceView) -> JSONObject:
    """Return a position as its company shows it, with the person."""
    person = {"name": place.person_name}
    if place.person_slug:  # empty for an unlisted or unconfirmed profile
        person["slug"] = place.person_slug
    additional = place.extra.get("person") or {}
    for name in sorted(additional):
        person[name] = additional[name]
    return {"id": place.item_id, **_position(place, {"person": person})}


def _position(place: PlaceView, other_end: JSONObject) -> JSONObject:
    """Return a position with *other_end*, the person or the company of it, and its additional members."""
    position = {} if place.title is None else {"title": place.title}
    position |= other_end
    for name in sorted(place.extra):
        if name != "person":  # additional members of the person, not of the position
            position[name] = place.extra[name]
    return position


def company_document(view: CompanyView, schema: Schema) -> PublishedDocument:
    row = view.columns
    sites = sites_of(row)
    company = company_object(view, schema)
    item = _encode(company)
    return PublishedDocument(
        kind="company",
        key=row["slug"],
        position=position_of(row["listed_on"], row["publication_number"]),
        item=item,
        body=_encode({"data": company_bundle(view, msgspec.Raw(item), schema)}),
        updated_at=company["updatedAt"],
        provenance=company_mark(view),
        name=row["name"],
        facets={
            **facets_of(schema.listings["company"], {**company, "capTable": view.cap_table}),
            **_place_facets(view.places),
            **_open_votes(view),
            **_score_facets(view.assessments),
        },
        texts=(label_of(row, sites), row["description"], "\n".join([row["body"] or "", *_titles(view.proposals)])),
        search=search_texts_of_company(
            row,
            sites,
            ((place.person_slug, place.person_name, place.title) for place in view.positions),
            schema.company,
            listed=_numbers_and_addresses(view),
        ),
        treasury_minor=_counted_treasury(row),
        team_size=company.get("teamSize"),
        raising=company["raising"],
    )


def _counted_treasury(row: JSONMapping) -> int | None:
    """Return the amount that lists and sums count as a treasury: none whose note says that it is something else."""
    extra = row["extra"] or {}
    return None if extra.get(TREASURY_NOTE) else row["treasury_minor"]


def company_mark(view: CompanyView) -> str:
    """Return the mark of a company with its parts, which show the names of people."""
    return provenance.mark(view.columns, *(place.owned_on for place in view.positions))


def facets_of(listing: Listing, shown: JSONObject) -> dict[str, tuple[str, ...]]:
    """Return the values of each filter that find what is *shown*; exact keys are under names of their own."""
    facets: dict[str, tuple[str, ...]] = {}
    for name, (declared, by) in listing.filters.items():
        value = shown.get(declared.name)
        if by.presence or isinstance(value, bool):
            facets[name] = ("true" if value else "false",)
        elif not value:
            continue
        elif isinstance(value, str):
            facets[name] = (value,)
        else:
            facets[name] = tuple(dict.fromkeys(values_at(value, by.member)))
            if by.key:
                facets[name + KEY] = tuple(dict.fromkeys(values_at(value, by.key)))
    for name, declared in listing.declared_bounds:
        bound = declared.kind.bound(shown.get(declared.name))
        if bound is not None:
            facets[name + BOUND] = (str(bound),)
    return {name: values for name, values in facets.items() if values}


def _place_facets(places: Sequence[Place]) -> dict[str, tuple[str, ...]]:
    """Return the countries of addresses, also the derived ones, and their states, with the codes of these as keys."""
    countries = dict.fromkeys(place.country for place in places if place.country)
    states = dict.fromkeys(place.state for place in places if place.state)
    codes = dict.fromkeys(code for place in places for code in place.codes)
    facets = {"country": tuple(countries), "state": tuple(states), "state" + KEY: tuple(codes)}
    if places:
        facets[PLACED] = ("true" if countries else "false",)
    return {name: values for name, values in facets.items() if values}


def _score_facets(assessments: Iterable[JSONObject]) -> dict[str, tuple[str, ...]]:
    """Return the values by which the list of a framework's scores finds a company."""
    return {FACET + each["frameworkId"]: (written(each["score"]),) for each in assessments}


def _open_votes(view: CompanyView) -> dict[str, tuple[str, ...]]:
    """Return the days on which votes end that can be cast; on a later day, they are over."""
    days = set()
    for encoded in view.proposals:
        if b'"active"' not in bytes(encoded):  # decoding is expensive, and most proposals are decided
            continue
        proposal = msgspec.json.decode(encoded)
        day = _DAY.match(str(proposal.get("endDate")))
        if proposal.get("status") == "active" and day:
            days.add(day[0])
    return {VOTES_END: tuple(sorted(days))} if days else {}


def person_document(columns: JSONObject, places: Sequence[PlaceView], schema: Schema) -> PublishedDocument:
    """Render a person with positions in published companies, in the companies' order."""
    companies = [place.company for place in places if place.company]
    count = len({company["id"] for company in companies})
    words = [place.title for place in places] + [company["name"] for company in companies]
    positions = [_position(place, {"company": place.company}) for place in places]
    members = schema.person.published(columns, {"companyCount": count, "positions": positions})
    # The item of a list has the number of companies, and the detail has the positions themselves.
    item = dict(members)
    item.pop("positions", None)
    detail = dict(members)
    detail.pop("companyCount", None)
    extra = columns["extra"] or {}
    return PublishedDocument(
        kind="person",
        key=columns["slug"],
        position=position_of(None, columns["publication_number"]),
        item=_encode(item),
        body=_encode({"data": detail}),
        updated_at=members["updatedAt"],
        provenance=provenance.mark(columns, *(place.owned_on for place in places)),
        name=columns["name"],
        facets=facets_of(schema.listings["person"], {**extra, "positions": positions}),
        texts=(columns["slug"], "\n".join(filter(None, words)), columns["bio"]),
        search=search_texts_of_person(extra, schema.person),
        company_count=count,
    )


def _operator(company: JSONObject | None) -> JSONObject | None:
    return company_reference(company, company["logo_digest"]) if company else None


def framework_document(
    columns: JSONObject,
    company: JSONObject | None,
    schema: Schema,
    *,
    authored: bool,
    scores: FrameworkScores | None = None,
) -> PublishedDocument:
    """
    Render a framework.

    Args:
        company: the row of the published company behind it, or None.
        scores: those that companies have published, or None.
    """
    described_on = provenance.owned_on(company["provenance"], "description") if company else ""
    derived = {
        "isOpen": authored and not columns["closed"],
        "company": _operator(company),
        "scoreCount": scores.total if scores else None,
    }
    item = schema.framework.published(columns, derived)
    best_scores = None
    if scores:
        best_scores = [{**score, "company": _operator(score["company"])} for score in scores.best]
    description = company["description"] if company else ""
    detail = {**derived, "companyDescription": description, "topScores": best_scores}
    return PublishedDocument(
        kind="framework",
        key=columns["slug"],
        position=position_of(None, columns["publication_number"]),
        item=_encode(item),
        body=_encode({"data": schema.framework.published(columns, detail)}),
        updated_at=item["updatedAt"],
        provenance=provenance.mark(columns, described_on),
        name=columns["name"],
        facets=facets_of(schema.listings["framework"], item),
        texts=(columns["slug"], columns["description"], ""),
    )


MAX_PEOPLE: Final = 300
"""Names and titles of one company, the first ones; each person is found under people."""
MAX_IDENTIFIERS: Final = 50
MAX_ON_CHAIN: Final = 200
MAX_PROPOSALS: Final = 2_000
MAX_HOLDERS: Final = 10_000
_IDENTIFIER: Final = re.compile(r"(?=[^\s]*\d)[\w.:/#-]{5,100}")
"""One word with a digit: an LEI, a registration number, an on-chain address."""
_ON_CHAIN: Final = re.compile(r"(?<![0-9A-Za-z])0x[0-9a-fA-F]{40}(?![0-9A-Za-z])")
"""An on-chain address, also in a link or a table of a text."""
_WEBSITES: Final = ("website", "dao_website")
_PROFILES: Final = ("twitter", "facebook", "instagram", "tiktok", "linkedin", "youtube")
_BARE: Final = Record("", ())
_PLACE: Final = ("city", "state", "zip", "country")


def sites_of(row: JSONMapping) -> list[str]:
    """Return a company's domains and handles."""
    sites = [host_of(row[name]) for name in _WEBSITES if row[name]]
    socials = row["socials"] or {}
    handles = [handle_of(socials[name]) for name in _PROFILES if socials.get(name)]
    return [host for host in sites if host] + handles


def label_of(row: JSONMapping, sites: Iterable[str]) -> str:
    """Return a company's symbol, slug, domains and handles as words."""
    words = (row["symbol"], row["slug"], *sites)
    return " ".join(dict.fromkeys(word for word in words if word))


class _PartRow(msgspec.Struct):
    """A proposal or a holder, as far as it is found by: a row of thousands is not decoded whole."""

    id: Any = None
    title: Any = None
    address: Any = None


_decode_row = msgspec.json.Decoder(_PartRow).decode


def _titles(proposals: Iterable[msgspec.Raw]) -> list[str]:
    rows = map(_decode_row, islice(proposals, MAX_PROPOSALS))
    return [row.title for row in rows if isinstance(row.title, str)]


def _numbers_and_addresses(view: CompanyView) -> list[str]:
    """Return by what single proposals and holders are found: the former by their number, the latter by their wallet."""
    proposals = map(_decode_row, islice(view.proposals, MAX_PROPOSALS))
    holders = map(_decode_row, islice(view.cap_table, MAX_HOLDERS))
    numbers = [row.id for row in proposals if isinstance(row.id, str)]
    addresses = [row.address for row in holders if isinstance(row.address, str)]
    return numbers + addresses


def search_texts_of_company(
    row: JSONMapping,
    sites: Iterable[str],
    people: Iterable[tuple[str, str, str | None]],
    record: Record = _BARE,
    *,
    listed: Iterable[str] = (),
) -> SearchTexts:
    """
    Return a company's search texts.

    Args:
        sites: its domains and handles.
        people: for each position, the person's slug, name and title. Only listed people are found by their names.
        listed: the numbers of its proposals and the addresses of its holders.
    """
    extra = row["extra"] or {}
    if extra:
        retired = record.retired(row)
        extra = {name: value for name, value in extra.items() if name not in retired}
    texts = _texts(extra)
    identifiers = islice(filter(_IDENTIFIER.fullmatch, texts), MAX_IDENTIFIERS)
    on_chain = islice(_on_chain([row["body"] or "", *texts]), MAX_ON_CHAIN)
    symbol = marked(SYMBOL, [row["symbol"]])
    sites_and_numbers = marked(SITE, [*sites, *identifiers, *on_chain, *listed])
    themes = (*(row["themes"] or ()), row["type"], row["industry"], *_declared(extra, record))
    former_names = public_former_names(row["former_names"]) or ()
    return SearchTexts(
        keys=(*symbol, *sites_and_numbers),
        themes="\n".join(filter(None, themes)),
        place="\n".join(dict.fromkeys(_places(row["address"]))),
        people="\n".join(islice(_names_and_titles(people), MAX_PEOPLE)),
        former=tuple(former_name["name"] for former_name in former_names),
    )


def _names_and_titles(people: Iterable[tuple[str, str, str | None]]) -> dict[str, None]:
    """Return the names of listed people and the titles of all, each once."""
    words: dict[str, None] = {}
    for slug, name, title in people:
        if slug and name:
            words[name] = None
        if title:
            words[title] = None
    return words


def search_texts_of_person(extra: JSONMapping, record: Record) -> SearchTexts:
    """Return a person's search texts: the declared fields; identifiers are also found without their spaces."""
    texts = list(_declared(extra, record))
    return SearchTexts(keys=tuple(marked(SITE, filter(_IDENTIFIER.fullmatch, texts))), themes="\n".join(texts))


def _declared(extra: JSONMapping, record: Record) -> Iterator[str]:
    """Yield the texts of the declared fields that are shown, and the names of countries."""
    for declared in record.declared:
        if declared.name == TREASURY_NOTE:  # it qualifies a figure, and says nothing of the organization
            continue
        value = extra.get(declared.name)
        if isinstance(declared.kind, Items):
            yield from _texts(value)
        if isinstance(value, str):
            yield value
            if isinstance(declared.kind, Country):
                yield str(country_names().get(value, ""))


def _on_chain(texts: Iterable[str]) -> dict[str, None]:
    """Return the on-chain addresses in *texts*, each once."""
    addresses: dict[str, None] = {}
    for text in texts:
        if "0x" in text:  # the expression is slow on long texts
            for address in _ON_CHAIN.findall(text):
                addresses[address.lower()] = None
    return addresses


def _texts(value: Any) -> list[str]:
    """Return the texts in *value* (JSON), in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    texts: list[str] = []
    if isinstance(value, list):
        for member in value:
            texts += _texts(member)
    return texts


def _places(addresses: list[JSONMapping] | None) -> Iterator[str]:
    if not addresses:
        return
    for address, place in zip(addresses, places_of(addresses), strict=True):
        yield from filter(None, map(address.get, _PLACE))
        if place.country:
            yield str(country_names().get(place.country, ""))
        if place.state:
            yield place.state
            yield place.codes[-1]
