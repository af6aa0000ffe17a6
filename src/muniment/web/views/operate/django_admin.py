"""Django's admin site at /admin, where a setting or an earlier version of the instance turned it on."""

import functools
from collections.abc import Callable
from typing import Any, Final

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.contrib.auth.models import Group
from django.http import HttpRequest
from django.utils.translation import gettext

from muniment import config
from muniment.accounts.models import FormerDefault
from muniment.kernel.problems import NotFound

NAME: Final = "django_admin"


def is_on() -> bool:
    """Return whether this instance serves Django's admin site."""
    chosen = config.current().django_admin
    return FormerDefault.objects.filter(name=NAME).exists() if not chosen else chosen == "on"


def prepare() -> None:
    """Register the tables, and let every page of the site exist only where it is on."""
    admin.autodiscover()
    admin.site.unregister(Group)  # permissions come from roles
    admin.site.login = _gated(secure_admin_login(admin.site.login))  # type: ignore[method-assign]  # as allauth's manual has it
    inner = admin.site.admin_view

    def admin_view(view: Any, cacheable: bool = False) -> Any:  # noqa: FBT001, FBT002 - Django's signature
        return _gated(inner(view, cacheable))

    admin.site.admin_view = admin_view  # type: ignore[method-assign]  # each page of the site passes it


def _gated(view: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(view)
    def enter(request: HttpRequest, *given: Any, **where: Any) -> Any:
        if not is_on():
            raise NotFound(gettext("This page doesn't exist."), gettext("Operators use the pages at /operate."))
        return view(request, *given, **where)

    return enter
