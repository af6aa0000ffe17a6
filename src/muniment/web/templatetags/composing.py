"""Django's ``extends`` and ``include``, with templates of a constant name looked up once instead of in every page."""

from typing import Any, Final, cast

from django import template
from django.template import loader_tags
from django.template.base import Parser, Template, TextNode, Token
from django.template.context import Context
from django.template.loader_tags import BLOCK_CONTEXT_KEY, BlockContext, BlockNode, ExtendsNode, IncludeNode
from django.utils.functional import Promise
from django.utils.safestring import SafeString

from muniment.languages.speaking import language
from muniment.web.translating import is_reworded

register = template.Library()
_CONSTANT: Final = (str, SafeString)


class KnownParent(ExtendsNode):
    """Renders a template inside another of a constant name."""

    _parent: Template | None = None
    _root_blocks: dict[str, BlockNode] | None = None

    def get_parent(self, context: Context) -> Template:
        """Return the other template. One of the same name depends on the template that asks, so Django finds it."""
        if self._parent is not None:
            return self._parent
        parent: Template = super().get_parent(context)
        if _constant(self.parent_name) not in {"", self.origin.template_name}:
            self._parent = parent
        return parent

    def render(self, context: Context) -> SafeString:
        """Render as Django does, which looks for the blocks of the outermost template in every page."""
        parent = self.get_parent(context)
        held: Any = context.render_context
        blocks = held.setdefault(BLOCK_CONTEXT_KEY, BlockContext())
        blocks.add_blocks(self.blocks)
        root_blocks = self._root_blocks
        if root_blocks is None or parent is not self._parent:
            first = next((node for node in parent.nodelist if not isinstance(node, TextNode)), None)
            is_root = first is not None and not isinstance(first, ExtendsNode)
            found: Any = parent.nodelist.get_nodes_by_type(BlockNode) if is_root else ()
            root_blocks = self._root_blocks = {node.name: node for node in found}
        if root_blocks:
            blocks.add_blocks(root_blocks)
        with held.push_state(parent, isolated_context=False):
            rendered: SafeString = cast("Any", parent)._render(context)  # noqa: SLF001 - as Django's node does
            return rendered


class KnownInclude(IncludeNode):
    """Renders another template of a constant name."""

    _included: Template | None = None

    def render(self, context: Context) -> SafeString:
        if self._included is None:
            here: Any = self.origin.template_name
            name = loader_tags.construct_relative_path(here, _constant(self.template))
            self._included = cast("Template", context.template).engine.get_template(str(name))
        values = {name: value.resolve(context) for name, value in self.extra_context.items()}
        if self.isolated_context:
            return self._included.render(context.new(values))
        with context.push(**values):
            return self._included.render(context)


@register.tag
def extends(parser: Parser, token: Token) -> ExtendsNode:
    node: ExtendsNode = loader_tags.do_extends(parser, token)
    return KnownParent(node.nodelist, node.parent_name)


@register.tag
def include(parser: Parser, token: Token) -> IncludeNode:
    node: IncludeNode = loader_tags.do_include(parser, token)
    if not _constant(node.template):
        return node
    values: Any = {
        name: _Spoken(value) if isinstance(value.var, Promise) and not value.filters else value
        for name, value in node.extra_context.items()
    }
    return KnownInclude(node.template, extra_context=values, isolated_context=node.isolated_context)


class _Spoken:
    """A constant text given to a template, looked up once in each language."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self._texts: dict[str, str] = {}

    def resolve(self, context: Context) -> Any:
        if is_reworded():
            return self._value.resolve(context)
        code = language()
        found = self._texts.get(code)
        if found is None:
            found = self._texts[code] = str(self._value.resolve(context))
        return found


def _constant(name: Any) -> str:
    """Return a name that is the same in every page, else an empty string."""
    return str(name.var) if isinstance(name.var, _CONSTANT) and not name.filters else ""
