"""Guidance for a search that finds little or nothing, in the language of the page; the API gives it in English."""

import re
from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext, gettext_lazy

from muniment.languages.catalogues import SOURCE
from muniment.languages.speaking import language

_PATTERNS: Final = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r'The name is similar to "(?P<q>.*)"\.', gettext_lazy("The name is similar to “%(q)s”.")),
        (
            r'The name is similar to "(?P<q>.*)"\. The filters leave it out\.',
            gettext_lazy("The name is similar to “%(q)s”, but the filters leave it out."),
        ),
        (
            r'Has words similar to "(?P<q>.*)"\. The filters leave it out\.',
            gettext_lazy("Has words similar to “%(q)s”, but the filters leave it out."),
        ),
        (r'Has words similar to "(?P<q>.*)"\.', gettext_lazy("Has words similar to “%(q)s”.")),
        (r'Matches "(?P<q>.*)", but not the filters\.', gettext_lazy("Matches “%(q)s”, but not the filters.")),
        (r'Has only some of the words "(?P<q>.*)"\.', gettext_lazy("Has only some of the words “%(q)s”.")),
        (r'Its name is in "(?P<q>.*)"\.', gettext_lazy("Its name is in “%(q)s”.")),
        (
            r'Formerly "(?P<name>.*)", similar to "(?P<q>.*)"\.',
            gettext_lazy("Formerly “%(name)s”, similar to “%(q)s”."),
        ),
        (r'Formerly "(?P<name>.*)"\.', gettext_lazy("Formerly “%(name)s”.")),
        (
            r"No \w+ has the (?P<name>\w+) (?P<values>\".*?\")\. Values in use: (?P<used>.*)\.",
            gettext_lazy("No result has %(values)s as %(name)s. Values in use: %(used)s."),
        ),
        (
            r"No \w+ has the (?P<name>\w+) (?P<values>\".*\")\.",
            gettext_lazy("No result has %(values)s as %(name)s."),
        ),
        (r"No \w+ has (?P<name>\w+) (?:true|false)\.", gettext_lazy("Nothing matches %(name)s.")),
        (r"No \w+ matches (?P<name>\w+)\. Leave out \w+\.", gettext_lazy("Nothing matches %(name)s.")),
        (
            r"No \w+ matches (?P<names>\w+ and \w+)\. Leave out .*\.",
            gettext_lazy("Nothing matches all of these: %(names)s."),
        ),
        (
            r"The company (?P<company>.*) has no listed \w+\.",
            gettext_lazy("Nothing is listed for %(company)s."),
        ),
        (
            r'There is no company "(?P<q>.*)"\. Did you mean (?P<slugs>.*)\?',
            gettext_lazy("There is no “%(q)s”. Did you mean %(slugs)s?"),
        ),
        (r'There is no company "(?P<q>.*)"\.', gettext_lazy("There is no “%(q)s”.")),
        (
            r"No \w+ matches all of (?P<names>[^.]*)\. Alone, (?P<counts>.*)\.",
            gettext_lazy("Nothing matches all of these: %(names)s. Alone: %(counts)s."),
        ),
        (
            r"No \w+ matches all of (?P<names>.*)\.",
            gettext_lazy("Nothing matches all of these: %(names)s."),
        ),
        (
            r'No \w+ matches "(?P<q>.*)"\. Did you mean "(?P<corrected>.*)"\?',
            gettext_lazy("Nothing matches “%(q)s”. Did you mean “%(corrected)s”?"),
        ),
        (
            r'No \w+ matches "(?P<q>.*)"\. Use fewer or other words\.',
            gettext_lazy("Nothing matches “%(q)s”. Use fewer or other words."),
        ),
    )
)
_SEVERAL: Final = re.compile(r" or (?=\W)| or another$")
_QUOTED: Final = re.compile(r'"([^"]*)"')


def guidance(text: str, labels: Mapping[str, object] | None = None) -> str:
    """
    Return what a search says in the language of the page; a sentence that is not known stays as it is.

    Args:
        labels: what the page calls the parameters that a sentence can name.
    """
    if language() == SOURCE:
        return _QUOTED.sub(r"“\1”", text)
    for pattern, words in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        values = match.groupdict()
        # The API names a parameter as it is written in an address, the page by its label.
        if labels and values.get("name") in labels:
            values["name"] = str(labels[values["name"]])
        return str(words) % {name: _local(value) for name, value in values.items()}
    return text


def _local(text: str) -> str:
    """Return a list of values with the word between them in the language of the page."""
    counted = re.sub(r" matches (?=\d)", f" {gettext('finds')} ", text)
    quoted = _QUOTED.sub(lambda match: gettext("“%(words)s”") % {"words": match[1]}, counted)
    return _SEVERAL.sub(f" {gettext('or')} ", quoted)
