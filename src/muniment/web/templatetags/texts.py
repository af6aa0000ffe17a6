"""Django's translation tags, with ``translate`` resolved when a template is parsed while there is one language."""

from django import template
from django.template.base import Node, Parser, TextNode, Token
from django.template.context import Context
from django.templatetags import i18n

from muniment.registry_toml.wording import names_companies
from muniment.web.translating import has_languages, is_reworded

register = template.Library()
register.tags.update(i18n.register.tags)


@register.tag
def translate(parser: Parser, token: Token) -> Node:
    """Translate as Django does: a page has dozens of constant texts, and each costs 10 microseconds to render."""
    node = i18n.do_translate(parser, token)
    is_constant = node.filter_expression.var.literal is not None and not node.filter_expression.filters
    if has_languages() or node.asvar or node.message_context or not is_constant:
        return node
    text = node.render(Context())
    return _Worded(node, text) if names_companies(str(node.filter_expression.var.literal)) else TextNode(text)


class _Worded(Node):
    """A constant text that says company, unless the registry declares another word."""

    def __init__(self, node: Node, text: str) -> None:
        self._node, self._text = node, text

    def render(self, context: Context) -> str:
        return self._node.render(context) if is_reworded() else self._text
