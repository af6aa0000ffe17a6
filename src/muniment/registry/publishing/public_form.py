"""
Read a public document of another registry back into what is published of it: its item, filters and search texts.

The document itself stays as it is, byte by byte. It is read as a line of an import, by the same schema, and what that
leaves unread is checked by its declaration too: pages rely on the form of every member.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Joined, Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.exchange.rows import read_company, read_framework, read_person
from muniment.registry.publishing.documents import (
    CompanyView,
    PlaceView,
    company_document,
    facets_of,
    person_document,
    position_of,
)
from muniment.schema.objects import Schema
from muniment.schema.places import places_of
from muniment.schema.record import Record
from muniment.schema.validation import Validation
from muniment.store.published_document import PublishedDocument

MAX_DOCUMENT_BYTES: Final = 32 << 20
"""Of a document: several times that of a listing with all the rows that a cap table may have."""
NOT_USED: Final = "It was not used. A registry of a newer version may have documents that this version does not know."
_KEY: Final = {"company": "id", "person": "slug", "framework": "frameworkId"}


def read_public(kind: str, data: bytes, number: int, schema: Schema) -> PublishedDocument:
    """
    Return what is published of a document.

    Args:
        data: the document as its registry encodes it, without the member ``data`` around it.
        number: its number in the order of publication, among the documents of its kind.

    Raises:
        BadRequest: it is not a document of that kind, or a member has another form than the schema declares.
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        message = Phrase("A {kind} has more than {limit} MB.", kind=kind, limit=MAX_DOCUMENT_BYTES >> 20)
        raise BadRequest(message, NOT_USED)
    try:
        document = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        message = Phrase("A {kind} is not a JSON object: {error}.", kind=kind, error=str(error))
        raise BadRequest(message, NOT_USED) from None
    validation = Validation(change=False)
    read = _READERS[kind](document, number, schema, validation)
    if read is None or validation.faults:
        members = document.get("company") if kind == "company" else document
        key = members.get(_KEY[kind]) if isinstance(members, dict) else None
        faults = Joined("; ", [fault.sentence for fault in validation.faults[:3]])
        message = Phrase("The {kind} {key} is malformed: {faults}.", kind=kind, key=str(key)[:200], faults=faults)
        raise BadRequest(message, NOT_USED)
    return replace(read, body=b'{"data":%b}' % data)


def _company(document: JSONObject, number: int, schema: Schema, validation: Validation) -> PublishedDocument | None:
    row = read_company(document, schema, validation)
    if row is None:
        return None
    validation.judge(row.broken)
    company = document["company"]
    _check_derived(schema.company, company, validation)
    if validation.faults or not _is_dated(company, validation):
        return None
    columns = {
        **row.columns,
        "slug": row.slug,
        "publication_number": number,
        "updated_at": row.updated_at,
        "provenance": None,
        "former_names": row.columns.get("former_names"),
        "distribution": None,
    }
    positions = []
    for position in row.positions or ():
        positions.append(PlaceView(position.title, {}, person_slug=position.slug, person_name=position.name))
    address = row.columns["address"]
    view = CompanyView(
        columns,
        positions,
        _encoded_rows(row.proposals),
        _encoded_rows(row.cap_table),
        row.funding_rounds or [],
        assessments=company.get("assessments") or [],
        shown=company,
        places=places_of(address) if address else [],
    )
    return replace(company_document(view, schema), item=msgspec.json.encode(company))


def _encoded_rows(rows: list[JSONObject] | None) -> list[msgspec.Raw]:
    """Return rows as the database holds them."""
    return [msgspec.Raw(msgspec.json.encode(row)) for row in rows or ()]


def _person(document: JSONObject, number: int, schema: Schema, validation: Validation) -> PublishedDocument | None:
    row = read_person(document, schema, validation)
    if row is None:
        return None
    validation.judge(row.broken)
    _check_derived(schema.person, document, validation)
    if validation.faults or not _is_dated(document, validation):
        return None
    places = []
    for position in document.get("positions") or ():
        others = {name: value for name, value in position.items() if name not in {"title", "company"}}
        places.append(PlaceView(position.get("title"), others, company=position.get("company")))
    columns = {
        **row.columns,
        "slug": row.slug,
        "publication_number": number,
        "updated_at": row.updated_at,
        "provenance": None,
    }
    read = person_document(columns, places, schema)
    members = {name: value for name, value in document.items() if name != "positions"}
    item = schema.person.in_order({**members, "companyCount": read.company_count})
    return replace(read, item=msgspec.json.encode(item))


def _framework(document: JSONObject, number: int, schema: Schema, validation: Validation) -> PublishedDocument | None:
    row = read_framework({"framework": document}, schema, validation)
    _check_derived(schema.framework, document, validation)
    if row is None or validation.faults or not _is_dated(document, validation):
        return None
    only_detail = {field.name for field in schema.framework.fields if not field.shown}
    item = {name: value for name, value in document.items() if name not in only_detail}
    return PublishedDocument(
        kind="framework",
        key=row.slug,
        position=position_of(None, number),
        item=msgspec.json.encode(item),
        body=b"",
        updated_at=document["updatedAt"],
        provenance="",
        name=row.columns["name"],
        facets=facets_of(schema.listings["framework"], item),
        texts=(row.slug, row.columns["description"], ""),
    )


def _is_dated(members: JSONObject, validation: Validation) -> bool:
    """Return whether an object has the time of its last change, which an import may lack."""
    if not isinstance(members.get("updatedAt"), str):
        validation.refuse(("updatedAt",), Phrase("is missing"))
    return not validation.faults


def _check_derived(record: Record, members: JSONObject, validation: Validation) -> None:
    """Judge the members that an import does not read, because a registry derives them."""
    for field in record.fields:
        value = members.get(field.name)
        if not field.imported and value is not None:
            validation.collect(partial(field.kind.read, value, (field.name,), validation), None)


_READERS: Final[dict[str, Callable[[JSONObject, int, Schema, Validation], PublishedDocument | None]]] = {
    "company": _company,
    "person": _person,
    "framework": _framework,
}
