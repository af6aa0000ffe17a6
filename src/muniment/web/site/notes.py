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
        if fault := compile_fault(contents, origin, engine):
            yield TemplateNote(fault, is_fault=True)
            continue
        template = Template(contents, origin, name, engine)
        yield from _unknown(template, file, engine)
        yield from _unstable(template, name)


def _unknown(template: Template, file: Path, engine: Engine) -> Iterator[TemplateNote]:
    nodes = [*template.nodelist.get_nodes_by_type(ExtendsNode), *template.nodelist.get_nodes_by_type(IncludeNode)]
    for node in nodes:
        expression: Any = getattr(node, "parent_name", None) or getattr(node, "template", None)
        named = expression.var
        if isinstance(named, str) and not named.startswith("."):
            try:
                engine.get_template(named)
            except TemplateDoesNotExist:
                line = node.token.lineno if node.token else 1
                yield TemplateNote(f"{file}, line {line}: there is no template {named}", is_fault=True)


def _unstable(template: Template, name: str) -> Iterator[TemplateNote]:
    """Yield a note if a template replaces more of a built-in one than the stable blocks."""
    if not _is_built_in(name):
        return
    root: Any = next((node for node in template.nodelist if isinstance(node, ExtendsNode)), None)
    if root is None or str(root.parent_name.var) != name:
        yield TemplateNote(
            f"{name} replaces a whole template of Muniment; compare it after each upgrade", is_fault=False
        )
        return
    found: Any = template.nodelist.get_nodes_by_type(BlockNode)
    if others := sorted({node.name for node in found} - STABLE.get(name, frozenset())):
        says = f"{name} replaces {', '.join(others)}, which is no stable block; compare it after each upgrade"
        yield TemplateNote(says, is_fault=False)


def _is_built_in(name: str) -> bool:
    loader = Loader(built_in().engine)
    return any(Path(origin.name).is_file() for origin in loader.get_template_sources(name))
