"""Tags that keep what Django would look up or render again: parts of pages, and the templates that others name."""

from typing import Any, Final

from django import template
from django.template import Engine
from django.template.base import FilterExpression, Node, NodeList, Parser, Template, Token
from django.template.context import Context
from django.template.loader_tags import BlockNode, ExtendsNode, IncludeNode, do_extends, do_include
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
        settings = applied()
        if settings is not self._settings:
            self._settings = settings
            self._kept = {}
        key = (language(), *[value.resolve(context) for value in self._values])
        html = self._kept.get(key)
        if html is None:
            html = self.nodelist.render(context)
            if len(self._kept) < MAX_KEPT:
                self._kept[key] = html
        return html


@register.tag
def kept(parser: Parser, token: Token) -> KeptNode:
    """
    Render what is inside once for the values of the named variables: ``{% kept room registry_name %}…{% endkept %}``.

    It is kept for as long as the process lives, so the content must depend on nothing else: no edition, no visitor.
    """
    values = [parser.compile_filter(name) for name in token.split_contents()[1:]]
    nodelist = parser.parse(("endkept",))
    parser.delete_first_token()
    return KeptNode(nodelist, values)


class KeptInclude(IncludeNode):
    """
    Includes a template that is named in the text: it is looked up once.

    A page includes about 12; this and `KeptExtends` save 6 % of what a company's page costs.
    """

    _found: Template | None = None

    def render(self, context: Context) -> SafeString:
        if self._found is None:
            engine: Engine = context.template.engine  # type: ignore[union-attr]  # it is being rendered
            self._found = engine.get_template(self.template.var)
        values = {name: value.resolve(context) for name, value in self.extra_context.items()}
        if self.isolated_context:
            return self._found.render(context.new(values))
        with context.push(**values):
            return self._found.render(context)


class KeptBlocks(NodeList):
    """The nodes of a template that others extend, whose blocks are collected once."""

    _blocks: list[Any] | None = None

    def get_nodes_by_type(self, nodetype: type) -> list[Any]:
        if nodetype is not BlockNode:
            return super().get_nodes_by_type(nodetype)
        if self._blocks is None:
            self._blocks = super().get_nodes_by_type(BlockNode)
        return self._blocks


class KeptExtends(ExtendsNode):
    """Extends a template that is named in the text: it and its blocks are looked up once."""

    _found: Template | None = None

    def get_parent(self, context: Context) -> Template:
        if self._found is None:
            parent = super().get_parent(context)
            if not isinstance(parent.nodelist, KeptBlocks):
                parent.nodelist = KeptBlocks(parent.nodelist)
            self._found = parent
        return self._found


@register.tag
def include(parser: Parser, token: Token) -> Node:
    """Include a template, as Django does."""
    node = do_include(parser, token)
    if not _is_named(node.template):
        return node
    return KeptInclude(node.template, extra_context=node.extra_context, isolated_context=node.isolated_context)


@register.tag
def extends(parser: Parser, token: Token) -> Node:
    """Extend a template, as Django does."""
    node = do_extends(parser, token)
    return KeptExtends(node.nodelist, node.parent_name) if _is_named(node.parent_name) else node


def _is_named(expression: Any) -> bool:
    """Return whether an expression is the name of a template, from the root of the folders of templates."""
    return isinstance(expression.var, str) and not expression.filters and not expression.var.startswith(".")
