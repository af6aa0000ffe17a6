"""Django's translation tags, with constant texts of ``translate`` looked up once in each language."""

from typing import Any, Final

from django import template
from django.template import defaultfilters
from django.template.base import Node, Parser, Token
from django.template.context import Context
from django.templatetags import i18n

from muniment.languages.recalled import recalled as recall
from muniment.languages.speaking import language
from muniment.languages.translated import translated as shown
from muniment.languages.writing import local_style
from muniment.web.translating import is_reworded

register = template.Library()
register.tags.update(i18n.register.tags)
_MAX_LANGUAGES: Final = 16


@register.filter
def date(value: Any, style: str | None = None) -> str:
    """Write a date as Django does; a day as the language writes it."""
    return str(defaultfilters.date(value, local_style(style) if style else style))


@register.filter
def translated(text: object) -> str:
    """Return a text of a feature, which says it in English, as the visitor reads it; a text of ours already is."""
    return shown(text) if isinstance(text, str) else str(text)


@register.filter
def recalled(text: object) -> str:
    """Return a text that was stored in English as the visitor reads it."""
    return recall(str(text))


@register.tag
def translate(parser: Parser, token: Token) -> Node:
    """Translate as Django does: a page has dozens of constant texts, and each costs 10 microseconds to render."""
    node = i18n.do_translate(parser, token)
    is_constant = node.filter_expression.var.literal is not None and not node.filter_expression.filters
    return node if node.asvar or node.message_context or not is_constant else _Constant(node)


class _Constant(Node):
    """A constant text, which depends on the language and on the declared word for a company alone."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._texts: dict[str, str] = {}

    def render(self, context: Context) -> str:
        if is_reworded():
            return self._node.render(context)
        code = language()
        found = self._texts.get(code)
        if found is None:
            found = self._node.render(Context())
            if len(self._texts) < _MAX_LANGUAGES:
                self._texts[code] = found
        return found
