"""
The templates that an operator lays into the site folder of a registry. They come before those of Muniment.

They are read once in a process. A template that cannot be compiled is logged with its line and left out, so that the
built-in one is shown; a page that fails while it is rendered is rendered again by the built-in templates alone.
"""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest
from django.template import Engine, Template
from django.template.backends.django import DjangoTemplates
from django.template.backends.django import Template as BackendTemplate
from django.template.base import Origin
from django.template.exceptions import TemplateDoesNotExist
from django.template.loaders.filesystem import Loader

from muniment.kernel.problems import Problem

log = logging.getLogger(__name__)


class SiteLoader(Loader):
    """Loads templates of the site folder that can be compiled."""

    def get_contents(self, origin: Origin) -> Any:
        contents = super().get_contents(origin)
        fault = compile_fault(contents, origin, self.engine)
        if fault:
            log.error("template left out, the built-in one is shown: %s", fault)
            raise TemplateDoesNotExist(origin)
        return contents


class SiteTemplates(DjangoTemplates):
    """Django's templates, of which each page can also be rendered without those of the site folder."""

    def get_template(self, template_name: str) -> "SiteTemplate":
        found: Any = super().get_template(template_name)
        return SiteTemplate(found.template, self)


class SiteTemplate(BackendTemplate):
    """A template of a page."""

    def render(self, context: dict[str, Any] | None = None, request: HttpRequest | None = None) -> str:
        def render() -> str:
            return super(SiteTemplate, self).render(context, request)

        return rendered(str(self.template.name), render, lambda other: other.render(context, request))


def rendered(name: str, render: Callable[[], str], otherwise: Callable[[BackendTemplate], str]) -> str:
    """Return what *render* returns; if it fails and there are site templates, what *otherwise* makes without them."""
    if not has_site_templates():
        return render()
    try:
        return render()
    except (DatabaseError, Problem):
        raise
    except Exception:
        log.exception("page rendered without the templates of the site folder: %s failed", name)
        other: Any = built_in().get_template(name)
        return otherwise(other)


def has_site_templates() -> bool:
    """Return whether this process has read a site folder with templates."""
    return str(settings.TEMPLATES[0]["BACKEND"]).endswith(".SiteTemplates")


@cache
def built_in() -> DjangoTemplates:
    options = {name: value for name, value in settings.TEMPLATES[0]["OPTIONS"].items() if name != "loaders"}
    return DjangoTemplates({"NAME": "built-in", "APP_DIRS": True, "DIRS": [], "OPTIONS": options})


def compile_fault(contents: Any, origin: Origin, engine: Engine) -> str:
    """Return what is wrong with a template, with its file and line; empty if it can be compiled."""
    try:
        name: Any = origin.template_name
        Template(contents, origin, name, engine)
    except Exception as error:  # noqa: BLE001 - tags raise errors of any kind
        token = getattr(error, "token", None)
        line = f", line {token.lineno}" if token is not None else ""
        return f"{origin.name}{line}: {error}"
    return ""
