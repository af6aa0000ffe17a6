"""Import of a table: upload, mapping, preview, import, result, undo."""

from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy

from muniment import config
from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Problem
from muniment.languages.translated import told, translated
from muniment.registry.imports import results, uploads
from muniment.registry.imports.undoing import list_imports
from muniment.registry.models import ImportUpload
from muniment.web.authoring import encodings, import_mapping
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import problems_shown
from muniment.web.views.operate.frame import operate_page
from muniment.web.views.public.company_lists import PARTS
from muniment.web.views.public.registry import company_context

HOME: Final = "/operate/import"
ACCEPT: Final = ".csv,.tsv,.txt,.xlsx,.xlsm,.xls,.xlsb,.ods,.json,.jsonl,.zip"
MAX_UPLOAD_MB: Final = 12
MAX_MAPPING_BYTES: Final = 2 << 20
_Stage: Final = uploads.Stage


@operator()
@once
def home(request: HttpRequest) -> HttpResponse:
    """Show the upload form, open imports and earlier ones; take an upload."""
    actor = actor_of(request)
    fault = ""
    if request.method == "POST":
        try:
            made = uploads.begin_import(actor, **_sent(request))
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


def _sent(request: HttpRequest) -> JSONObject:
    """Return what the upload form sent: a file or an address, and perhaps a mapping."""
    file: Any = request.FILES.get("file")
    address = "" if file else request.POST.get("address", "").strip()
    content = file.read() if file else b""
    return {
        "name": file.name if file else "",
        "content": content,
        "address": address,
        "mapping": _sent_mapping(request),
    }


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
    elif do == "use":
        uploads.save_mapping(actor, upload.pk, _sent_mapping(request))
    elif do in {"save", "read", "preview"}:
        before = uploads.mapping_of(upload)
        mapping = import_mapping.read_form(uploads.mapping_of(upload), upload.facts, request.POST.dict())
        if do == "preview":
            mapping.confirm_guesses()
        saved = uploads.save_mapping(actor, upload.pk, mapping)
        if do == "read":
            headers = import_mapping.headers_of(before, request.POST.dict())
            encoding = request.POST.get("encoding", "")
            encoding = encoding if encoding in encodings.ENCODINGS else before.encoding
            uploads.read_again(actor, upload.pk, encoding=encoding, headers=headers)
        elif do == "preview":
            tables = import_mapping.tables_of(mapping, saved.facts)
            if not import_mapping.has_name(tables) or any(import_mapping.questions_of(tables)):
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
    tables = import_mapping.tables_of(mapping, upload.facts)
    is_refused = request.method == "POST" and request.POST.get("do") == "preview"
    questions = list(import_mapping.questions_of(tables))
    choices = {name: str(label) for name, label in encodings.ENCODINGS.items()}
    encoding = encodings.encoding_named(upload.facts.get("encoding", ""))
    if encoding:
        choices.setdefault(encoding, encoding)
    context = {
        "upload": upload,
        "tables": tables,
        "kinds": import_mapping.KINDS.items(),
        "questions": questions,
        "is_refused": is_refused,
        "is_remembered": bool(upload.facts.get("is_remembered")),
        "guesses": sum(each.is_guess for table in tables for each in table.columns),
        "has_name": import_mapping.has_name(tables),
        "duplicates": import_mapping.duplicates_of(tables),
        "same": mapping.same_name_is_same_person,
        "encoding": encoding,
        "encodings": choices.items(),
        "crumbs": _crumbs(upload),
    }
    return operate_page(request, "import", "operate/import_mapping.html", context, status=422 if is_refused else 200)


def _preview_page(request: HttpRequest, upload: ImportUpload) -> HttpResponse:
    report = with_advice(upload.report)
    context = {
        "upload": upload,
        "report": report,
        "counts": counts_of(report),
        "samples": [each["company"] for each in report["samples"]],
        "is_empty": not (report["companies_total"] or report["people_total"]),
        "is_unchanged": not any(each["new"] or each["changed"] for each in report["counts"].values()),
        "crumbs": _crumbs(upload),
    }
    return operate_page(request, "import", "operate/import_preview.html", context)


_ADVICE: Final = {
    "Set its field in the mapping": gettext_lazy("Choose its field, or keep it as an additional field."),
    "Set order": gettext_lazy("Choose the order of dates at the column."),
    "Set currency": gettext_lazy("Enter the currency at the column."),
    "Set separator": gettext_lazy("Choose the separator at the column."),
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
        fix = group["fix"]
        advice = next((str(text) for start, text in _ADVICE.items() if fix.startswith(start)), translated(fix))
        # Whole columns that are left out for the same reason are one line.
        key = (number,) if group.get("rows_total") else (group["table"], group["reason"], advice)
        first = groups.setdefault(key, {**group, "advice": advice, "columns": []})
        first["columns"] += [group["column"]] if group["column"] else []
        if len(first["columns"]) > 1:
            first["example"] = ""
    hidden = report.get("groups_total", 0) - len(report.get("groups") or ())
    return {**report, "groups": list(groups.values()), "groups_total": len(groups) + max(0, hidden)}


def counts_of(report: JSONObject) -> list[JSONObject]:
    """Return the numbers of rows of a report for its tiles."""
    names = {"companies": gettext("Companies"), "people": gettext("People"), "frameworks": gettext("Frameworks")}
    return [{"label": names[kind], **each} for kind, each in (report.get("counts") or {}).items()]


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
    found = upload.report.get("samples") or []
    if not 0 < number <= len(found) or (part and part not in PARTS):
        raise Http404("unknown page of a preview")
    bundle = found[number - 1]
    here = f"{HOME}/{upload.pk}"
    page = f"{here}/pages/{number}"
    name = bundle["company"]["name"]
    crumbs = [(gettext("Import"), HOME), (upload.name, here), (name, page if part else "")]
    notice = {"import_back": here, "number": number, "total": len(found), "next": f"{here}/pages/{number + 1}"}
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
        "sections": [each for each in context["sections"] if each[0] != "history"],
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
    }
    return operate_page(request, "import", "operate/import_result.html", context)
