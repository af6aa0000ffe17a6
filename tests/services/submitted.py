"""The form of a page as a browser sends it: unedited."""

import re
from html.parser import HTMLParser

_SENT_INPUTS = {"text", "hidden", "search", "number", "email", "url", "date", "checkbox", "radio"}


def unedited(html: str, mark: str = "version") -> dict[str, list[str]]:
    """
    Return what a browser sends when the form with the field *mark* is saved as it was opened.

    An input of one line loses its line breaks, and all other line breaks are sent as CR LF (HTML, form submission).
    """
    parser = _Forms()
    parser.feed(html.replace("\r\n", "\n").replace("\r", "\n"))
    parser.close()
    [form] = [form for form in parser.forms if mark in dict(form)]
    fields: dict[str, list[str]] = {}
    for name, value in form:
        fields.setdefault(name, []).append(re.sub(r"\r\n?|\n", "\r\n", value))
    return fields


class _Forms(HTMLParser):
    """Collects the fields of every form; what stands in a template is in no form."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[list[tuple[str, str]]] = []
        self._templates = 0
        self._area: tuple[str, list[str]] | None = None
        self._select = ""
        self._options: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "template":
            self._templates += 1
        elif tag == "form":
            self.forms.append([])
        elif not self.forms or self._templates or "disabled" in given:
            return
        elif tag == "input" and given.get("name"):
            self._input(given)
        elif tag == "textarea":
            self._area = (given.get("name", ""), [])
        elif tag == "select":
            self._select, self._options = given.get("name", ""), []
        elif tag == "option" and self._select:
            self._options.append((given["value"], "selected" in given))

    def _input(self, given: dict[str, str]) -> None:
        kind = given.get("type", "text")
        assert kind in _SENT_INPUTS, f"an input of the type {kind} is not known here"
        value = given.get("value", "on" if kind == "checkbox" else "")
        if kind in {"checkbox", "radio"} and "checked" not in given:
            return
        self.forms[-1].append((given["name"], value if kind == "hidden" else value.replace("\r", "").replace("\n", "")))

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self._area[1].append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "template":
            self._templates -= 1
        elif tag == "textarea" and self._area is not None:
            name, text = self._area
            self.forms[-1].append((name, "".join(text).removeprefix("\n")))
            self._area = None
        elif tag == "select" and self._select:
            chosen = next((value for value, selected in self._options if selected), self._options[0][0])
            self.forms[-1].append((self._select, chosen))
            self._select = ""
