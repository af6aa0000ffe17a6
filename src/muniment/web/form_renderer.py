"""Form controls: simple inputs without templates, which Django renders with three for each."""

from html import escape
from typing import Any, Final

from django.forms.renderers import DjangoTemplates
from django.http import HttpRequest
from django.utils.safestring import SafeString, mark_safe

INPUTS: Final = frozenset(
    f"django/forms/widgets/{name}.html" for name in ("input", "text", "email", "password", "number", "url", "hidden")
)


class FormRenderer(DjangoTemplates):
    """Django's renderer, with the same output."""

    def render(self, template_name: str, context: dict[str, Any], request: HttpRequest | None = None) -> str:
        if template_name in INPUTS:
            return _input(context["widget"])
        return super().render(template_name, context, request)


def _input(widget: dict[str, Any]) -> SafeString:
    """Return an input element, as Django's template has it."""
    attributes = {"type": widget["type"], "name": widget["name"]}
    if widget["value"] is not None:
        attributes["value"] = widget["value"]
    html = ""
    for name, value in (*attributes.items(), *widget["attrs"].items()):
        if value is True:
            html += f" {name}"
        elif value is not False:
            html += f' {name}="{escape(str(value))}"'
    return mark_safe(f"<input{html}>")  # noqa: S308 - every value is escaped, names are ours
