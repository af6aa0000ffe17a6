"""
Render rows as the contract's public documents: order of keys, absent values, additions. Pure.

The contract's keys come first, in its order, then our additions (``treasuryAmount`` to ``updatedAt``), then
additional members of open objects, sorted.

Source: service document, Resources; decisions, section 2, absent values.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from muniment.kernel.ids import now
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.wire import PICTURE_PATH
from muniment.registry import provenance
from muniment.registry.company.parts import RoundRow
from muniment.registry.names import former
from muniment.schema.company import TREASURY_NOTE
from muniment.schema.company_parts import person_key
from muniment.schema.filters import Listing, values_at
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
    retired = record.retired(row)
    extra = {name: value for name, value in (row["extra"] or {}).items() if name not in retired}
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
