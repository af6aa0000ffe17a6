"""Import of a table: upload, mapping with the form of its columns, preview, import, result, undo."""

import codecs
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from muniment import config
from muniment.accounts.first_run import is_unfinished
from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Problem
from muniment.languages.translated import told, translated
from muniment.registry.imports import results, uploads
from muniment.registry.imports.sources import list_sources
from muniment.registry.imports.undoing import list_imports
from muniment.registry.models import ImportUpload
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE
from muniment.registry.tables.fields import ASK, DECLARED, EXTRA, PEOPLE_FIELD, SKIP, Column, field_named, fields_of
from muniment.registry.tables.keeping import keep_all, names_to_keep
from muniment.registry.tables.mapping import FileMapping, TableMapping
from muniment.registry.tables.persons import LAST_FIRST
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import problems_shown
from muniment.web.views.operate.fields import KINDS as KINDS_OF_FIELDS
from muniment.web.views.operate.frame import operate_page
from muniment.web.views.operate.import_reports import SUBJECTS, column_of, reason_of, shown_changes
from muniment.web.views.public.company_lists import PARTS
from muniment.web.views.public.registry import company_context
from muniment.web.wording.labels import words_of

HOME: Final = "/operate/import"
ACCEPT: Final = ".csv,.tsv,.txt,.xlsx,.xlsm,.xls,.xlsb,.ods,.json,.jsonl,.zip"
MAX_UPLOAD_MB: Final = 12
MAX_MAPPING_BYTES: Final = 2 << 20
_Stage: Final = uploads.Stage


ENCODINGS: Final = {
    "utf-8": gettext_lazy("Unicode (UTF-8)"),
    "cp1252": gettext_lazy("Western European (Windows-1252)"),
    "iso8859_15": gettext_lazy("Western European (ISO 8859-15)"),
    "mac_roman": gettext_lazy("Western European (Mac)"),
    "cp850": gettext_lazy("Western European (DOS)"),
    "cp1250": gettext_lazy("Central European (Windows-1250)"),
    "iso8859_2": gettext_lazy("Central European (ISO 8859-2)"),
    "mac_latin2": gettext_lazy("Central European (Mac)"),
    "cp1257": gettext_lazy("Baltic (Windows-1257)"),
    "cp1251": gettext_lazy("Cyrillic (Windows-1251)"),
    "koi8_r": gettext_lazy("Cyrillic (KOI8-R)"),
    "iso8859_5": gettext_lazy("Cyrillic (ISO 8859-5)"),
    "cp1253": gettext_lazy("Greek (Windows-1253)"),
    "cp1254": gettext_lazy("Turkish (Windows-1254)"),
    "cp1255": gettext_lazy("Hebrew (Windows-1255)"),
    "cp1256": gettext_lazy("Arabic (Windows-1256)"),
    "utf-16": gettext_lazy("Unicode (UTF-16)"),
    "cp932": gettext_lazy("Japanese (Shift JIS)"),
    "euc_jp": gettext_lazy("Japanese (EUC-JP)"),
    "gb18030": gettext_lazy("Chinese (GB 18030)"),
    "big5": gettext_lazy("Chinese (Big5)"),
    "cp949": gettext_lazy("Korean (EUC-KR)"),
}
"""By the names that a guess has, which former names of the same encoding become (see :func:`encoding_named`)."""
_SUPERSETS: Final = {"utf-8-sig": "utf-8", "shift_jis": "cp932", "euc_kr": "cp949"}
KINDS: Final = {
    COMPANIES: gettext_lazy("Companies"),
    PEOPLE: gettext_lazy("People"),
    SKIP: gettext_lazy("Leave this table out"),
}
_ORDERS: Final[dict[str, str | Promise]] = {
    "DMY": gettext_lazy("Day first: 31.12.2026"),
    "MDY": gettext_lazy("Month first: 12/31/2026"),
    "YMD": gettext_lazy("Year first: 2026-12-31"),
    "EXCEL": gettext_lazy("Days since 1900: 46387"),
    "UNIX": gettext_lazy("Seconds since 1970: 1798675200"),
}
_ORDERS_OF_NAMES: Final[dict[str, str | Promise]] = {
    "": gettext_lazy("First name first"),
    LAST_FIRST: gettext_lazy("Last name, first name"),
}
_ENDS: Final[dict[str, str | Promise]] = {
    "": gettext_lazy("A country, unless it is a state"),
    "country": gettext_lazy("A country"),
    "state": gettext_lazy("A state"),
}
_DECIMALS: Final[dict[str, str | Promise]] = {
    ".": gettext_lazy("Point: 1,200.50"),
    ",": gettext_lazy("Comma: 1.200,50"),
}
_UNITS: Final[dict[str, str | Promise]] = {
    "1": gettext_lazy("As written"),
    "1000": gettext_lazy("Thousands"),
    "10000": gettext_lazy("Ten thousands"),
    "1000000": gettext_lazy("Millions"),
    "100000000": gettext_lazy("Hundred millions"),
    "1000000000": gettext_lazy("Billions"),
}
_SEPARATORS: Final[dict[str, str | Promise]] = {
    "": gettext_lazy("One value in a cell"),
    ",": gettext_lazy("Comma"),
    ";": gettext_lazy("Semicolon"),
    "|": gettext_lazy("Vertical bar"),
    " / ": gettext_lazy("Slash"),
    " & ": "&",
    " and ": gettext_lazy("The word “and”"),
    " und ": gettext_lazy("The word “und”"),
    "、": "、",
    "\n": gettext_lazy("Line break"),
}
_NAMES: Final = {
    "order": gettext_lazy("Order of dates"),
    "decimal": gettext_lazy("Decimal sign"),
    "currency": gettext_lazy("Currency"),
    "unit": gettext_lazy("Unit"),
    "separator": gettext_lazy("Separator"),
    "title": gettext_lazy("Position"),
    "end": gettext_lazy("Addresses end with"),
    "words": gettext_lazy("Meanings of words"),
}
_HINTS: Final = {
    "currency": gettext_lazy("Currency, such as EUR"),
    "title": gettext_lazy("Position, such as Chair"),
    "words": gettext_lazy("word = status; word = status"),
}
_CHOICES: Final[dict[str, Mapping[str, str | Promise]]] = {
    "order": _ORDERS,
    "decimal": _DECIMALS,
    "unit": _UNITS,
    "separator": _SEPARATORS,
    "end": _ENDS,
}
_MAX_TEXT: Final = 300


class OptionField(NamedTuple):
    """An option of a column: a select if it has choices, else a text."""

    name: str
    label: str
    short: str
    value: str
    choices: list[tuple[str, str]]
    is_asked: bool
    hint: str


class FieldChoice(NamedTuple):
    """
    A field that a column can hold.

    Args:
        is_data: the label is made of the heading, so that no catalogue has it.
    """

    name: str
    label: str
    is_data: bool


class ColumnField(NamedTuple):
    """A column on the page."""

    name: str
    number: int
    heading: str
    samples: list[str]
    field: str
    groups: list[tuple[str, list[FieldChoice]]]
    options: list[OptionField]
    is_guess: bool = False
    kind: str = ""

    @property
    def is_asked(self) -> bool:
        return any(option.is_asked for option in self.options)

    @property
    def part(self) -> str:
        """Return the heading under which the column is: what a person must look at comes first."""
        if self.is_asked:
            return gettext("Needs a choice")
        if not self.field and self.kind:
            return gettext("Without a field, left out")
        if not self.field:
            return gettext("Left out")
        if self.is_guess:
            return gettext("Guessed, please check")
        return gettext("To be imported")


class TableField(NamedTuple):
    """A table on the page, with the columns that are left out first."""

    name: str
    title: str
    rows: int
    kind: str
    header: int
    columns: list[ColumnField]
    left_out: int
    hidden: int
    notes: list[str]
    check: list[str]
    combine: str = ""


@operator()
@once
def home(request: HttpRequest) -> HttpResponse:
    """Show the upload form, open imports and earlier ones; take an upload."""
    actor = actor_of(request)
    fault = ""
    if request.method == "POST":
        try:
            made = uploads.begin_import(actor, **sent_table(request))
        except Problem as refusal:
            fault = told(refusal)
        else:
            return HttpResponseRedirect(f"{HOME}/{made.pk}")
    context = {
        "fault": fault,
        "address": request.POST.get("address", ""),
        "accept": ACCEPT,
        "max_mb": min(MAX_UPLOAD_MB, config.current().import_max_mb),
        "open": uploads.list_open(actor),
        "runs": list_imports(),
    }
    return operate_page(request, "import", "operate/imports.html", context, status=422 if fault else 200)


def sent_table(request: HttpRequest) -> JSONObject:
    """Return what the upload form sent: a file or an address, and perhaps a mapping."""
    file: Any = request.FILES.get("file")
    name, content, address = "", b"", ""
    if file:
        name, content = file.name, file.read()
    else:
        address = request.POST.get("address", "").strip()
    return {"name": name, "content": content, "address": address, "mapping": _sent_mapping(request)}


def _sent_mapping(request: HttpRequest) -> str:
    file: Any = request.FILES.get("mapping")
    if not file:
        return ""
    if file.size > MAX_MAPPING_BYTES:
        raise BadRequest(gettext("The mapping is too large."), gettext("Choose a mapping.toml from an import."))
    try:
        return str(file.read().decode())
    except UnicodeDecodeError:
        raise BadRequest(
            gettext("The mapping is not a text file."), gettext("Choose a mapping.toml from an import.")
        ) from None


@operator()
@once
def step(request: HttpRequest, key: str) -> HttpResponse:
    """Show the step at which an import is, and act on it."""
    actor = actor_of(request)
    upload = uploads.get_import(actor, key)
    if request.method == "POST":
        went = None
        with problems_shown(request):
            went = _act(request, actor, upload)
        if went is not None:
            return went
        upload = uploads.get_import(actor, key)
    if upload.run_id and upload.state in {_Stage.IMPORTING, _Stage.DONE}:
        return HttpResponseRedirect(f"{HOME}/runs/{upload.run_id}")
    if upload.state in {_Stage.READING, _Stage.CHECKING}:
        return _working_page(request, upload)
    if upload.state == _Stage.PREVIEW and "mapping" not in request.GET and request.method != "POST":
        return _preview_page(request, upload)
    return _mapping_page(request, upload)


def _act(request: HttpRequest, actor: Actor, upload: ImportUpload) -> HttpResponse | None:
    """Do what a button says; None if its page has something to correct."""
    do = request.POST.get("do", "")
    here = f"{HOME}/{upload.pk}"
    if do == "discard":
        uploads.discard(actor, upload.pk)
        messages.success(request, gettext("Import discarded. Nothing was imported."))
        return HttpResponseRedirect(HOME)
    if do == "again":
        uploads.try_again(actor, upload.pk)
    elif do == "import":
        uploads.request_import(actor, upload.pk, request.POST.getlist("option"))
    elif do == "compare":
        uploads.compare_with(actor, upload.pk, request.POST.get("source", ""), is_complete="complete" in request.POST)
    elif do == "use":
        uploads.save_mapping(actor, upload.pk, _sent_mapping(request))
    elif do in {"save", "read", "preview", "keep"}:
        return _take_mapping(request, actor, upload, do)
    return HttpResponseRedirect(here)


def _take_mapping(request: HttpRequest, actor: Actor, upload: ImportUpload, do: str) -> HttpResponse | None:
    """Store what the form of the columns says, and continue; None if a preview needs choices."""
    here = f"{HOME}/{upload.pk}"
    before = uploads.mapping_of(upload)
    mapping = read_form(uploads.mapping_of(upload), upload.facts, request.POST.dict())
    if do == "preview":
        mapping.confirm_guesses()
    elif do == "keep":
        keep_all(mapping)
    saved = uploads.save_mapping(actor, upload.pk, mapping)
    if do == "read":
        headers = headers_of(before, request.POST.dict())
        encoding = request.POST.get("encoding", "")
        if encoding not in ENCODINGS:
            encoding = before.encoding
        uploads.read_again(actor, upload.pk, encoding=encoding, headers=headers)
    elif do == "preview":
        tables = tables_of(mapping, saved.facts)
        if not has_name(tables) or any(questions_of(tables)):
            return None
        uploads.request_preview(actor, upload.pk)
    else:
        here += "?mapping"
    return HttpResponseRedirect(here)


def _crumbs(upload: ImportUpload) -> list[tuple[str, str]]:
    return [(gettext("Operate"), "/operate"), (gettext("Import"), HOME), (upload.name, "")]


def _working_page(request: HttpRequest, upload: ImportUpload) -> HttpResponse:
    context = {"upload": upload, "progress": uploads.progress_of(upload.job), "crumbs": _crumbs(upload)}
    if upload.error:
        context["progress"] = uploads.Progress(error=upload.error)
    return operate_page(request, "import", "operate/import_working.html", context)


def _mapping_page(request: HttpRequest, upload: ImportUpload) -> HttpResponse:
    mapping = uploads.mapping_of(upload)
    tables = tables_of(mapping, upload.facts)
    is_refused = request.method == "POST" and request.POST.get("do") == "preview"
    questions = list(questions_of(tables))
    choices = {name: str(label) for name, label in ENCODINGS.items()}
    encoding = encoding_named(upload.facts.get("encoding", ""))
    if encoding:
        choices.setdefault(encoding, encoding)
    context = {
        "upload": upload,
        "tables": tables,
        "kinds": KINDS.items(),
        "questions": questions,
        "is_refused": is_refused,
        "is_remembered": bool(upload.facts.get("is_remembered")),
        "guesses": len(mapping.doubts()),
        "has_name": has_name(tables),
        "duplicates": duplicates_of(tables),
        "same": mapping.same_name_is_same_person,
        "currency": settings.CURRENCY,
        "encoding": encoding,
        "encodings": choices.items(),
        "crumbs": _crumbs(upload),
    }
    return operate_page(request, "import", "operate/import_mapping.html", context, status=422 if is_refused else 200)


def _preview_page(request: HttpRequest, upload: ImportUpload) -> HttpResponse:
    report = with_advice(upload.report)
    written_rows = 0
    for counts in report["counts"].values():
        written_rows += counts["new"] + counts["changed"]
    gone = []
    for row in report.get("gone") or ():
        gone.append({**row, "kind": SUBJECTS[row["kind"]]})
    context = {
        "upload": upload,
        "report": report,
        "counts": counts_of(report),
        "samples": [bundle["company"] for bundle in report["samples"]],
        "is_empty": not (report["companies_total"] or report["people_total"]),
        "is_unchanged": not written_rows,
        "changes": shown_changes(report),
        "gone": gone,
        "source": uploads.source_options(upload),
        "sources": list_sources(),
        "crumbs": _crumbs(upload),
    }
    return operate_page(request, "import", "operate/import_preview.html", context)


_ADVICE: Final = {
    "Set its field in the mapping": gettext_lazy("Choose its field, or keep it as an additional field."),
    "Set order": gettext_lazy("Choose the order of dates at the column."),
    "Set currency": gettext_lazy("Enter the currency at the column."),
    "Set separator": gettext_lazy("Choose the separator at the column."),
    "If it is a state": gettext_lazy("If it is a state, choose at the column what addresses end with."),
    "Set the right encoding": gettext_lazy("Choose another character encoding and read the file again."),
    "Set its kind": gettext_lazy("Choose what its rows are, and which column is the name."),
    "Add it under words": gettext_lazy("Enter its meaning at the column, such as “paused = inactive”."),
    "To show it too": gettext_lazy("To show it too, choose an additional field for the column."),
    "Map one of the columns": gettext_lazy("Choose another field for one of the columns."),
    "To keep such texts": gettext_lazy("To keep such texts, choose an additional field for the column."),
}
"""Advice of the page that replaces advice about the mapping's file, by the beginning of that advice."""


def with_advice(report: JSONObject) -> JSONObject:
    """Return a report whose groups say how the page helps, with columns of the same fault together."""
    groups: dict[tuple[object, ...], JSONObject] = {}
    for number, group in enumerate(report.get("groups") or ()):
        advice = _advice_of(group["fix"])
        # Whole columns that are left out for the same reason are one line.
        key = (number,) if group.get("rows_total") else (group["table"], group["reason"], advice)
        line = groups.setdefault(key, {**group, "reason": reason_of(group["reason"]), "advice": advice, "columns": []})
        if group["column"]:
            line["columns"].append(column_of(group["column"]))
        if len(line["columns"]) > 1:
            line["example"] = ""
    hidden = report.get("groups_total", 0) - len(report.get("groups") or ())
    return {**report, "groups": list(groups.values()), "groups_total": len(groups) + max(0, hidden)}


def _advice_of(fix: Any) -> str:
    for beginning, advice in _ADVICE.items():
        if fix.startswith(beginning):
            return str(advice)
    return translated(fix)


def counts_of(report: JSONObject) -> list[JSONObject]:
    """Return the numbers of rows of a report for its tiles."""
    labels = {"companies": gettext("Companies"), "people": gettext("People"), "frameworks": gettext("Frameworks")}
    tiles = []
    for kind, counts in (report.get("counts") or {}).items():
        tiles.append({"label": labels[kind], **counts})
    return tiles


@operator("GET", "HEAD")
def mapping_file(request: HttpRequest, key: str) -> HttpResponse:
    """Return the mapping of an import as a file."""
    upload = uploads.get_import(actor_of(request), key)
    headers = {"Content-Disposition": 'attachment; filename="mapping.toml"'}
    return HttpResponse(upload.mapping, content_type="application/toml; charset=utf-8", headers=headers)


@operator("GET", "HEAD")
def sample(request: HttpRequest, key: str, number: int, part: str = "") -> HttpResponse:
    """Show the page of one of the first entries as it will look."""
    upload = uploads.get_import(actor_of(request), key)
    bundles = upload.report.get("samples") or []
    if not 0 < number <= len(bundles) or (part and part not in PARTS):
        raise Http404("unknown page of a preview")
    bundle = bundles[number - 1]
    here = f"{HOME}/{upload.pk}"
    page = f"{here}/pages/{number}"
    name = bundle["company"]["name"]
    link_to_page = page if part else ""
    crumbs = [(gettext("Import"), HOME), (upload.name, here), (name, link_to_page)]
    notice = {"import_back": here, "number": number, "total": len(bundles), "next": f"{here}/pages/{number + 1}"}
    if part:
        response = PARTS[part](request, bundle, page)
        shown: JSONObject = getattr(response, "context_data", None) or {}
        shown |= {"preview": notice, "room": "manage", "crumbs": [*crumbs, (shown.get("part_title", part), "")]}
        return response
    context = company_context(request, bundle, page)
    context |= {
        "preview": notice,
        "room": "manage",
        "has_claims": False,
        "changes": [],
        "crumbs": crumbs,
    }
    return render(request, "registry/company.html", context)


@operator()
@once
def result(request: HttpRequest, key: int) -> HttpResponse:
    """Show the progress or the result of an import or an undo; undo it."""
    actor = actor_of(request)
    if request.method == "POST":
        with problems_shown(request):
            if request.POST.get("do") == "undo":
                return HttpResponseRedirect(f"{HOME}/runs/{results.request_undo(actor, key)}")
            found = results.get_result(actor, key)
            if found.upload:
                uploads.try_again(actor, found.upload)
            results.try_undo_again(actor, key)
        return HttpResponseRedirect(f"{HOME}/runs/{key}")
    found = results.get_result(actor, key)
    title = gettext("Undo of import %(key)s") % {"key": found.undoes} if found.undoes else found.files
    crumbs = [(gettext("Operate"), "/operate"), (gettext("Import"), HOME), (title, "")]
    context = {
        "found": found,
        "title": title,
        "counts": counts_of(found.report),
        "crumbs": crumbs,
        "report": with_advice(found.report),
        "is_first": is_unfinished(),
    }
    return operate_page(request, "import", "operate/import_result.html", context)


def encoding_named(name: str) -> str:
    """Return the name that the list of encodings has for one: "iso8859-2" and "latin2" are "iso8859_2"."""
    try:
        codec = codecs.lookup(_SUPERSETS.get(name, name)).name
    except LookupError:
        return name
    for listed_name in ENCODINGS:
        if codecs.lookup(listed_name).name == codec:
            return listed_name
    return name


def label_of(name: str) -> str:
    """Return the label of a field: that of its declaration, or of an additional member its name as pages show it."""
    field = field_named(name)
    if field is not None:
        return gettext(field.label)
    return words_of(name.rpartition(".")[2].removeprefix(EXTRA))


def _options_of(column: Column) -> tuple[str, ...]:
    field = column.table_field if column.field else None
    return field.options if field is not None else ()


def tables_of(mapping: FileMapping, facts: JSONObject) -> list[TableField]:
    """Return the form of *mapping*; columns that are left out come first, as they are what a person looks for."""
    tables = []
    for n, (table, table_facts) in enumerate(zip(mapping.table, facts.get("tables") or (), strict=False)):
        name = f"t{n}"
        names = names_to_keep(table)
        columns = []
        # Of a wide table, only the first columns have facts, and are on the page.
        for at, (column, column_facts) in enumerate(zip(table.column, table_facts["columns"], strict=False)):
            if column.heading or column_facts["samples"]:
                columns.append(_column(f"{name}-c{at}", at, table, column, column_facts, names.get(at, "")))
        columns.sort(key=_place_on_page)
        left_out = sum(bool(column.kind) for column in columns)
        hidden = len(table.column) - len(table_facts["columns"])
        check: list[str] = []
        if table.kind != SKIP:
            check = table.check
        combine = ""
        if table.kind == COMPANIES:
            combine = table.combine
        tables.append(
            TableField(
                name,
                table.name,
                table_facts["rows"],
                table.kind,
                table.header,
                columns,
                left_out,
                hidden,
                table_facts["notes"],
                check,
                combine,
            )
        )
    return tables


def _place_on_page(column: ColumnField) -> tuple[bool, bool, bool, bool, bool]:
    """Return what columns are sorted by: what a person must look at comes first."""
    is_kept = bool(column.field)
    return (not column.is_asked, not column.is_guess, is_kept, not column.kind, not column.samples)


def _column(  # noqa: PLR0917 - a column and what is known of it
    name: str, at: int, table: TableMapping, column: Column, column_facts: JSONObject, new_name: str
) -> ColumnField:
    options = []
    is_guess = False
    kind_of_new_field = ""
    if table.kind != SKIP:
        options = [_option(name, column, option) for option in _options_of(column)]
        is_guess = column.check
        if not column.field:
            kind_of_new_field = _kind_of_new_field(column)
    return ColumnField(
        name,
        at + 1,
        column.heading or gettext("Column %(n)d") % {"n": at + 1},
        column_facts["samples"],
        column.field,
        _groups(table.kind, column, new_name),
        options,
        is_guess,
        kind_of_new_field,
    )


def _kind_of_new_field(column: Column) -> str:
    """Return the kind under which a column would be kept, with the unit of its numbers; "" for none."""
    kind = str(KINDS_OF_FIELDS.get(column.kind, ""))
    if column.kind == "number" and column.currency:
        return f"{kind} ({column.currency})"
    return kind


def _groups(kind: str, column: Column, new_name: str) -> list[tuple[str, list[FieldChoice]]]:
    """
    Return the fields that a column can hold, in groups.

    Args:
        new_name: the key under which the column could be kept as a field of its own; "" if it is kept already.
    """
    titles = {
        "": gettext("General"),
        DECLARED: gettext("Fields of this registry"),
        _NEW: gettext("New field of this registry"),
        PEOPLE_FIELD: gettext("People"),
        "socials": gettext("Contact and profiles"),
        "address": gettext("Address"),
        EXTRA: gettext("Additional fields, public"),
    }
    groups: dict[str, list[FieldChoice]] = {title: [] for title in titles.values()}
    for name, group in _fields_by_group(kind, column, new_name).items():
        label = label_of(name)
        if group == _NEW:
            label = f"{column.label} ({KINDS_OF_FIELDS.get(column.kind, column.kind)})"
        is_data = group == EXTRA
        groups[titles.get(group, titles[""])].append(FieldChoice(name, label, is_data))
    return [(title, choices) for title, choices in groups.items() if choices]


def _fields_by_group(kind: str, column: Column, new_name: str) -> dict[str, str]:
    """Return the group of each field that a column can hold, by the name of the field."""
    kind_of_rows = COMPANIES if kind == SKIP else kind
    fields = fields_of(kind_of_rows)
    group_of = {name: field.group for name, field in fields.items()}
    if column.kind:
        group_of.setdefault(column.field or f"{EXTRA}{new_name}", _NEW)
    elif new_name:
        group_of.setdefault(f"{EXTRA}{new_name}", EXTRA)
    if column.field.startswith(EXTRA):
        group_of.setdefault(column.field, EXTRA)
    elif _is_gone(column.field):
        group_of[column.field] = ""
    return group_of


_NEW: Final = "new"
"""The group of the field that is proposed for a column without one."""


def _is_gone(field: str) -> bool:
    """Return whether a column has a field that is not declared any more; it is offered, so that it stays."""
    return field.isidentifier() and field not in fields_of(COMPANIES) and field not in fields_of(PEOPLE)


def _option(name: str, column: Column, option: str) -> OptionField:
    stored = getattr(column, option)
    value = str(stored)
    if option == "words":
        value = "; ".join(f"{word} = {meaning}" for word, meaning in stored.items())
    asking_value = "0" if option == "unit" else ASK  # a unit is a number
    is_asked = value == asking_value
    choices = [(code, str(label)) for code, label in _choices_of(column, option).items()]
    if is_asked and not choices:
        value = ""
    elif not is_asked and choices and value not in dict(choices):
        choices.append((value, value))
    is_of_names = option == "order" and column.field == PEOPLE_FIELD
    short = gettext("Order of names") if is_of_names else str(_NAMES[option])
    label = f"{column.heading}: {short}"
    return OptionField(f"{name}-{option}", label, short, value, choices, is_asked, str(_HINTS.get(option, "")))


def _choices_of(column: Column, option: str) -> Mapping[str, str | Promise]:
    """Return the choices of an option; none for a text. Names of people have another order than dates."""
    if option == "order" and column.field == PEOPLE_FIELD:
        return _ORDERS_OF_NAMES
    return _CHOICES.get(option, {})


def read_form(mapping: FileMapping, facts: JSONObject, sent: Mapping[str, str]) -> FileMapping:
    """Return *mapping* with what a form says; columns that the form lacks stay as they are."""
    for n, (table, table_facts) in enumerate(zip(mapping.table, facts.get("tables") or (), strict=False)):
        name = f"t{n}"
        kind = sent.get(f"{name}-kind", table.kind)
        if kind != table.kind and kind in KINDS:
            _change_kind(table, kind, table_facts)
            # The rest of what the form says of the table is about the columns of the former kind.
            sent = {key: value for key, value in sent.items() if not key.startswith(f"{name}-c")}
        combine = sent.get(f"{name}-combine", "")
        if table.combine and combine in {"yes", "no"}:
            table.combine = combine
        names = names_to_keep(table)
        for at, (column, column_facts) in enumerate(zip(table.column, table_facts["columns"], strict=False)):
            fields = _fields_by_group(table.kind, column, names.get(at, ""))
            _read_column(f"{name}-c{at}", column, column_facts["options"], fields.keys(), sent)
    if "has-same" in sent:  # a checkbox that is not ticked is not sent
        mapping.same_name_is_same_person = "same" in sent
    return mapping


def _change_kind(table: TableMapping, kind: str, table_facts: JSONObject) -> None:
    """Let rows be of another kind, with the fields that were proposed for that kind when the file was read."""
    table.kind, table.check = kind, []
    proposed = table_facts.get("proposed", {}).get(kind)
    if proposed:
        table.column = [Column(**column) for column in proposed]


def _read_column(
    name: str, column: Column, options_by_field: JSONObject, fields: Collection[str], sent: Mapping[str, str]
) -> None:
    """
    Take the field of a column from a form, or the options of the field that it has.

    Args:
        options_by_field: the options that were proposed for each field that the column may hold.
    """
    field = sent.get(name, column.field)
    if field and field not in fields:
        field = ""
    if field != column.field:
        # The form had the options of the former field.
        column.field, column.check = field, False
        for option, value in options_by_field.get(field, {}).items():
            setattr(column, option, value)
        return
    for option in _options_of(column):
        text = sent.get(f"{name}-{option}")
        if text is not None:
            _read_option(column, option, text.replace("\r\n", "\n")[:_MAX_TEXT])


def _read_option(column: Column, option: str, text: str) -> None:
    match option:
        case "words":
            column.words = _meanings(text)
        case "unit" if text in _UNITS:
            column.unit = int(text)
        case "currency":
            currency = text.strip().upper()[:3]
            # Left empty where the cells name their currency, it stays so; where a person is asked, the question stays.
            if currency or column.currency != ASK:
                column.currency = currency
        case "title":
            column.title = " ".join(text.split())
        case _ if text in _choices_of(column, option):
            setattr(column, option, text)


def _meanings(text: str) -> dict[str, str]:
    """Return the meaning of each word of ``word = status; word = status``."""
    meanings = {}
    for pair in text.split(";"):
        word, equals_sign, meaning = pair.partition("=")
        if equals_sign and word.strip():
            meanings[word.strip()] = meaning.strip()
    return meanings


def headers_of(mapping: FileMapping, sent: Mapping[str, str]) -> dict[str, int]:
    """Return the rows of headings that a form says, by the name of the table."""
    headers = {}
    for n, table in enumerate(mapping.table):
        text = sent.get(f"t{n}-header", "")
        header = table.header
        if text.isascii() and text.isdigit() and len(text) < 7:
            header = int(text)
        headers[table.name] = header
    return headers


def questions_of(tables: list[TableField]) -> Iterator[tuple[str, str]]:
    """Yield the name and the label of each option that a person must choose."""
    for table in tables:
        if table.combine == ASK:
            yield f"{table.name}-combine", gettext("%(table)s: rows with the same name") % {"table": table.title}
        if table.kind == SKIP:
            continue
        for column in table.columns:
            for option in column.options:
                if option.is_asked:
                    yield option.name, option.label


def duplicates_of(tables: list[TableField]) -> list[str]:
    """Return a sentence for each field that several columns of a table hold: only the first value of a row counts."""
    sentences = []
    for table in tables:
        headings_of: dict[str, list[str]] = {}
        for column in table.columns:
            # Several columns may name people, each for another position.
            if column.field and column.field != PEOPLE_FIELD:
                headings_of.setdefault(column.field, []).append(column.heading)
        for field, headings in headings_of.items():
            if len(headings) > 1:
                text = gettext("%(columns)s hold the same field, %(field)s. The first column with a value counts.")
                sentences.append(text % {"columns": ", ".join(headings), "field": label_of(field)})
    return sentences


def has_name(tables: list[TableField]) -> bool:
    """Return whether at least one table is imported and has a name in each row."""
    for table in tables:
        fields = {column.field for column in table.columns}
        if table.kind != SKIP and not fields.isdisjoint({"name", "name.last"}):
            return True
    return False
