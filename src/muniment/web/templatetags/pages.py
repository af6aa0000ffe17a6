"""Filters and tags of the pages: form controls with hint and error, monograms, state pills, Markdown."""

import re
from collections.abc import Iterable
from datetime import datetime
from html import escape

from django import forms, template
from django.contrib.auth.password_validation import (
    get_default_password_validators,
    password_validators_help_text_html,
)
from django.forms.boundfield import BoundField
from django.template.defaultfilters import filesizeformat
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince
from django.utils.translation import gettext, ngettext

from muniment.accounts.adapters import sentence_case
from muniment.accounts.security.events import browser
from muniment.kernel.actor import COMMAND
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.languages.translated import within
from muniment.languages.writing import number
from muniment.web.lists.search import DEFAULT, Search
from muniment.web.presenters import markdown as md
from muniment.web.presenters.charts import percent
from muniment.web.presenters.company import day_or_text, proof_method
from muniment.web.presenters.company_lists import amount
from muniment.web.presenters.differences import label_of
from muniment.web.presenters.linked_text import breakable, coded_html, folded_html, linked_html, pathed_html
from muniment.web.presenters.marks import mark_html, pill_html
from muniment.web.wording import labels
from muniment.web.wording.imports import outcome as import_outcome
from muniment.web.wording.states import happened, ledger, state, transferred

register = template.Library()


@register.filter
def markdown(text: str | None) -> SafeString:
    return md.render(text or "")


@register.filter
def plain(text: str | None, limit: int = 200) -> str:
    """Return the first words of a Markdown text without its markup."""
    return md.plain(text or "", limit)


register.filter("amount", amount)
register.filter("day", day_or_text)
register.filter("percent", percent)
register.filter("label", labels.label)
register.filter("folded", folded_html)
register.filter("linked", linked_html)
register.filter("coded", coded_html)
register.filter("pathed", pathed_html)
register.filter("breakable", breakable)


@register.filter
def elapsed(since: datetime) -> str:
    """Return how long ago *since* is, in its largest unit: "27 seconds", "3 days"."""
    seconds = int((now() - since).total_seconds())
    if seconds < 60:
        return ngettext("%(count)d second", "%(count)d seconds", seconds) % {"count": seconds}
    return timesince(since, depth=1)


@register.filter
def size(count: int) -> str:
    """Return a number of bytes in its unit, without a decimal that says nothing: 500 MB."""
    return re.sub(r"\D0(?=\s)", "", filesizeformat(count))


@register.filter
def signed(amount: int) -> str:
    """Return a number with its sign, as the language writes numbers: +90, −10."""
    sign = "−" if amount < 0 else "+"
    return f"{sign}{number(abs(amount))}"


register.filter("happened", happened)
register.filter("spoken", gettext)
register.filter("state_word", state)
register.filter("transfer", transferred)
register.filter("ledger", ledger)
register.filter("import_outcome", import_outcome)


@register.filter
def field_labels(names: Iterable[str]) -> str:
    """Return what the pages call some fields of a listing, for use within a sentence."""
    return ", ".join(within(label_of(name)) for name in names)


@register.filter
def credential(name: str) -> str:
    """Return the name of a token or app as it is, and words for the command line."""
    return gettext("command line") if name == COMMAND.credential else name


def is_check(field: BoundField) -> bool:
    """Return whether *field* is a single checkbox."""
    return isinstance(field.field.widget, forms.CheckboxInput)


def is_group(field: BoundField) -> bool:
    """Return whether *field* is a group of inputs under one legend."""
    return isinstance(field.field.widget, forms.RadioSelect | forms.CheckboxSelectMultiple)


register.filter("sentence", sentence_case)


def label(field: BoundField) -> str:
    """Return the label of *field*, in sentence case."""
    return sentence_case(str(field.label)) if _is_foreign(field) else str(field.label)


register.filter("browser", browser)


def _is_foreign(field: BoundField) -> bool:
    return type(field.form).__module__.startswith("allauth.")


@register.simple_tag(name="field")
def field_html(field: BoundField, given_label: str = "") -> SafeString:
    """Render a field: its label, its hint, its control and its errors."""
    hint, faults = conditional_escape(_hint(field)), field.errors
    field.field.help_text = hint  # allauth's is made each time it is looked at
    text = escape(given_label or label(field))
    need, note = _need(field), getattr(field.field, "note", "")
    need_html = f' <span class="quiet">{need}</span>' if need else ""
    hints = f'<div class="hint" id="{field.auto_id}_hint">{hint}</div>' if hint else ""
    if note:
        hints += f'<div class="hint waits" id="{field.auto_id}_note">{conditional_escape(note)}</div>'
    items = "".join(f"<li>{conditional_escape(fault)}</li>" for fault in faults)  # type: ignore[arg-type]  # texts
    faults_html = f'<ul class="fault" id="{field.auto_id}_fault">{items}</ul>' if items else ""
    control, label_html = _control(field, hint), f'<label for="{field.id_for_label}">{text}'
    classes = "field"
    if is_check(field):
        classes = "field check"
        inside = f"{control}{label_html}</label>{hints}"
    elif is_group(field):
        inside = f"<fieldset><legend>{text}{need_html}</legend>{hints}{control}</fieldset>"
    else:
        inside = f"{label_html}{need_html}</label>{hints}{control}"
    html = f'<div class="{classes}">\n{inside}{faults_html}\n</div>'
    return mark_safe(html)  # noqa: S308 - every text is escaped


def _hint(field: BoundField) -> str:
    """Return the help of *field*; the rules of passwords, which Django has as a list, in one line."""
    if field.help_text != password_validators_help_text_html():
        return str(field.help_text)
    least = 0
    for validator in get_default_password_validators():
        least = getattr(validator, "min_length", least)  # one of them is about the length
    text = gettext("At least %(count)d characters, not a common password, and not like your email address.")
    return text % {"count": least}


def _need(bound: BoundField) -> str:
    """Return whether a field must be filled in, in words; nothing if it must or cannot be, or none of its form must."""
    field = bound.field
    if field.required or field.disabled:
        return ""
    if getattr(field, "needed", False):
        return gettext("(needed to publish)")
    if getattr(bound.form, "says_optional", True):
        return gettext("(optional)")
    return ""


def _control(field: BoundField, hint: str) -> SafeString:
    """Render the control of *field*, linked to its hint and its error."""
    attributes: JSONObject = {}
    described = []
    if hint:
        described.append(f"{field.auto_id}_hint")
    if getattr(field.field, "note", ""):
        described.append(f"{field.auto_id}_note")
    if field.errors:
        described.append(f"{field.auto_id}_fault")
        attributes["aria-invalid"] = "true"
    if described and not is_group(field):
        attributes["aria-describedby"] = " ".join(described)
    widget = field.field.widget
    if _is_foreign(field):
        widget.attrs.pop("placeholder", None)  # it repeats the label
    if isinstance(widget, forms.TextInput | forms.Textarea) and getattr(widget, "input_type", "text") == "text":
        attributes.setdefault("dir", "auto")
    return field.as_widget(attrs=attributes)


@register.simple_tag
def criterion_place(section: int, criterion: int) -> str:
    """Return the start of the names of a criterion's fields in the form of a specification."""
    return f"s.{section}.c.{criterion}"


@register.simple_tag
def mark(name: str, logo: object = None, size: str = "", *, round: bool = False, key: str = "") -> SafeString:  # noqa: A002 - the word of the template
    """Show a logo that this instance serves, or a monogram of *name* in the colour of *key*."""
    return mark_html(name, logo, size, is_round=round, key=key)


register.filter("proof_method", proof_method)
register.simple_tag(pill_html, name="pill")


@register.simple_tag
def heading(search: Search, order: str, label: str) -> SafeString | str:
    """Show the head of a column, as a link if the list can be sorted by it."""
    sort = DEFAULT if order == "newest" and not search.q else order
    if order != "newest" and order not in search.of.orders:
        return label
    address = escape(search.sorted_by(sort).address())
    return mark_safe(f'<a href="{address}" rel="nofollow">{escape(str(label))}</a>')  # noqa: S308 - both are escaped
