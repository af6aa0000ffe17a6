"""Notes on templates of the site folder that are broken, or may break with the next version: for `muniment doctor`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from django.template import Engine, Template, engines
from django.template.base import Origin
from django.template.exceptions import TemplateDoesNotExist
from django.template.loader_tags import BlockNode, ExtendsNode, IncludeNode
from django.template.loaders.app_directories import Loader

from muniment.web.site.loading import built_in, compile_fault

STABLE: Final = {
    "base.html": frozenset({"site_head", "header", "footer"}),
    "registry/home.html": frozenset({"hero", "lists", "connect"}),
}
"""The blocks that stay from version to version, by template. All else may change in any version."""


class TemplateNote(NamedTuple):
    """A message of `muniment doctor` about a template of the site folder."""

    says: str
    is_fault: bool


def template_notes(site: Path) -> Iterator[TemplateNote]:
    """Yield what is broken, or may break with the next version, in the templates of a site folder."""
    folder = site / "templates"
    engine: Any = getattr(engines["django"], "engine")  # noqa: B009 - Django's type lacks it
    for file in sorted(folder.rglob("*.html")):
        name = str(file.relative_to(folder))
        origin = Origin(str(file), name)
        try:
            contents = file.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            yield TemplateNote(f"{file}: {error}", is_fault=True)
            continue
        fault = compile_fault(contents, origin, engine)
        if fault:
            yield TemplateNote(fault, is_fault=True)
            continue
        template = Template(contents, origin, name, engine)
        yield from _unknown(template, file, engine)
        yield from _unstable(template, name)


def _unknown(template: Template, file: Path, engine: Engine) -> Iterator[TemplateNote]:
    """Yield a note for each template that a template extends or includes and that does not exist."""
    nodes = [*template.nodelist.get_nodes_by_type(ExtendsNode), *template.nodelist.get_nodes_by_type(IncludeNode)]
    for node in nodes:
        expression: Any = getattr(node, "parent_name", None) or getattr(node, "template", None)
        name = expression.var
        # The name may be a variable, which only a page knows, or begin at the folder of the template.
        if not isinstance(name, str) or name.startswith("."):
            continue
        try:
            engine.get_template(name)
        except TemplateDoesNotExist:
            line = node.token.lineno if node.token else 1
            yield TemplateNote(f"{file}, line {line}: there is no template {name}", is_fault=True)


def _unstable(template: Template, name: str) -> Iterator[TemplateNote]:
    """Yield a note if a template replaces more of a built-in one than the stable blocks."""
    if not _is_built_in(name):
        return
    extended: list[Any] = [node for node in template.nodelist if isinstance(node, ExtendsNode)]
    if not extended or str(extended[0].parent_name.var) != name:
        yield TemplateNote(
            f"{name} replaces a whole template of Muniment; compare it after each upgrade", is_fault=False
        )
        return
    blocks: Any = template.nodelist.get_nodes_by_type(BlockNode)
    unstable = sorted({block.name for block in blocks} - STABLE.get(name, frozenset()))
    if unstable:
        says = f"{name} replaces {', '.join(unstable)}, which is no stable block; compare it after each upgrade"
        yield TemplateNote(says, is_fault=False)


def _is_built_in(name: str) -> bool:
    loader = Loader(built_in().engine)
    return any(Path(origin.name).is_file() for origin in loader.get_template_sources(name))
