"""A tag for parts of pages that are rendered once and kept, such as the header."""

from typing import Final

from django import template
from django.template.base import FilterExpression, Node, NodeList, Parser, Token
from django.template.context import Context
from django.utils.safestring import SafeString

from muniment.languages.speaking import language
from muniment.registry_toml.applied import applied

register = template.Library()
MAX_KEPT: Final = 32
"""Renderings of one part; the values that it depends on are few, and never a visitor's."""


class KeptNode(Node):
    """Renders its content once for the values that it depends on, in each language."""

    def __init__(self, nodelist: NodeList, values: list[FilterExpression]) -> None:
        self.nodelist = nodelist
        self._values = values
        self._settings = applied()
        self._kept: dict[tuple[object, ...], SafeString] = {}

    def render(self, context: Context) -> SafeString:
        if (settings := applied()) is not self._settings:
            self._settings = settings
            self._kept = {}
        key = (language(), *[each.resolve(context) for each in self._values])
        found = self._kept.get(key)
        if found is None:
            found = self.nodelist.render(context)
            if len(self._kept) < MAX_KEPT:
                self._kept[key] = found
        return found


@register.tag
def kept(parser: Parser, token: Token) -> KeptNode:
    """
    Render what is inside once for the values of the named variables: ``{% kept room registry_name %}…{% endkept %}``.

    It is kept for as long as the process lives, so the content must depend on nothing else: no edition, no visitor.
    """
    values = [parser.compile_filter(each) for each in token.split_contents()[1:]]
    nodelist = parser.parse(("endkept",))
    parser.delete_first_token()
    return KeptNode(nodelist, values)
