"""Django's translation tags, with ``translate`` resolved when a template is parsed while there is one language."""

from django import template
from django.conf import settings
from django.template.base import Node, Parser, TextNode, Token
from django.template.context import Context
from django.templatetags import i18n

register = template.Library()
register.tags.update(i18n.register.tags)


@register.tag
def translate(parser: Parser, token: Token) -> Node:
    """Translate as Django does: a page has dozens of constant texts, and each costs 10 microseconds to render."""
    node = i18n.do_translate(parser, token)
    is_constant = node.filter_expression.var.literal is not None and not node.filter_expression.filters
    if len(settings.LANGUAGES) > 1 or node.asvar or node.message_context or not is_constant:
        return node
    return TextNode(node.render(Context()))
