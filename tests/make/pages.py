"""Pages as a browser reads them: valid HTML, and the fields of a form."""

from typing import Any

import html5lib


def valid(html: str) -> Any:
    """Return the tree of a page without errors and without duplicate ids."""
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    tree = parser.parse(html)
    assert list(parser.errors) == [], html
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids)), [each for each in ids if ids.count(each) > 1]
    return tree


def fields_of(html: str) -> dict[str, str]:
    """Return what a browser without JavaScript submits for the first form of a page that was not touched."""
    tree = html5lib.parse(html, namespaceHTMLElements=False)
    form = next(each for each in tree.iter("form") if each.get("method") == "post")
    fields = {}
    for each in form.iter():
        if each.tag == "input" and each.get("type") == "checkbox":
            if "checked" in each.attrib:
                fields[each.get("name")] = each.get("value", "on")
        elif each.tag == "input" and each.get("type") != "submit":
            fields[each.get("name")] = "".join(each.get("value", "").splitlines())
        elif each.tag == "textarea":
            fields[each.get("name")] = (each.text or "").removeprefix("\n").replace("\n", "\r\n")
        elif each.tag == "select":
            chosen = [o for o in each.iter("option") if "selected" in o.attrib]
            fields[each.get("name")] = chosen[0].get("value", chosen[0].text) if chosen else ""
    return fields
