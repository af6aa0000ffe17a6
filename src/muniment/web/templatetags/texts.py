"""Django's translation tags, and filters for dates and for texts of features as the visitor reads them."""

from typing import Any

from django import template
from django.template import defaultfilters
from django.templatetags import i18n

from muniment.languages.translated import translated as shown
from muniment.languages.writing import local_style

register = template.Library()
register.tags.update(i18n.register.tags)


@register.filter
def date(value: Any, style: str | None = None) -> str:
    """Write a date as Django does; a day as the language writes it."""
    return str(defaultfilters.date(value, local_style(style) if style else style))


@register.filter
def translated(text: object) -> str:
    """Return a text of a feature, which says it in English, as the visitor reads it; a text of ours already is."""
    return shown(text) if isinstance(text, str) else str(text)
