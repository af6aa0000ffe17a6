"""Django's translation tags, and filters for dates and for texts of features as the visitor reads them."""

from typing import Any

from django import template
from django.template import defaultfilters
from django.template.base import Node, Parser, Token, Variable
from django.template.context import Context
from django.templatetags import i18n

from muniment.languages.speaking import language
from muniment.languages.translated import translated as shown
from muniment.languages.writing import local_style
from muniment.registry_toml.applied import applied

register = template.Library()
register.tags.update(i18n.register.tags)


class ConstantText(Node):
    """
    A text of the template itself: translated once in each language, with the words that the operator declares.

    A page has about 20 of them, and Django's node takes 25 microseconds for each.
    """

    child_nodelists = ()

    def __init__(self, node: Node) -> None:
        self._node = node
        self._settings = applied()
        self._texts: dict[tuple[str, bool], str] = {}

    def render(self, context: Context) -> Any:
        settings, key = applied(), (language(), context.autoescape)
        if settings is not self._settings:
            self._settings = settings
            self._texts = {}
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = self._node.render(context)
        return text


@register.tag(name="trans")
@register.tag(name="translate")
def translate(parser: Parser, token: Token) -> Node:
    """Translate a text, as Django does."""
    node = i18n.do_translate(parser, token)
    expression = node.filter_expression
    is_text = isinstance(expression.var, Variable) and expression.var.literal is not None
    is_changed = bool(expression.filters or node.asvar or node.message_context or node.noop)
    return ConstantText(node) if is_text and not is_changed else node


@register.filter
def date(value: Any, style: str | None = None) -> str:
    """Write a date as Django does; a day as the language writes it."""
    if style:
        style = local_style(style)
    return str(defaultfilters.date(value, style))


@register.filter
def translated(text: object) -> str:
    """Return a text of a feature, which says it in English, as the visitor reads it; a text of ours already is."""
    return shown(text) if isinstance(text, str) else str(text)
