"""Translation of constant texts, which a page has dozens of: while there is one language, each is looked up once."""

from functools import cache, lru_cache
from typing import Any

from django.conf import settings
from django.utils import translation
from django.utils.functional import lazy
from django.utils.translation import trans_real

from muniment.registry_toml.applied import current
from muniment.registry_toml.wording import reworded


def gettext(message: str) -> str:
    """Translate as Django does; Django's own look-up costs 6 microseconds."""
    return translation.gettext(message) if has_languages() or is_reworded() else _only(message)


def ngettext(singular: str, plural: str, number: int) -> str:
    """Translate as Django does a text that depends on a number."""
    if has_languages() or is_reworded():
        return translation.ngettext(singular, plural, number)
    return _only_one(singular, plural, number)


def is_reworded() -> bool:
    """Return whether the registry declares another word for a company, so that no text is constant."""
    return bool(current().words.company)


def use_declared_words() -> None:
    """
    Let every text in English say what a company is called here: those of forms, templates, pages and mail.

    All of them come from two functions of Django, which are wrapped, once.
    """
    texts: Any = translation._trans  # type: ignore[attr-defined]  # Django offers no hook  # noqa: SLF001
    if getattr(texts.gettext, "is_worded", False):
        return

    def find(message: str) -> str:
        return trans_real.gettext(message if _is_translated() else reworded(message))

    def find_one(singular: str, plural: str, number: int) -> str:
        if _is_translated():
            return trans_real.ngettext(singular, plural, number)
        return trans_real.ngettext(reworded(singular), reworded(plural), number)

    find.is_worded = True  # type: ignore[attr-defined]  # a mark of ours
    texts.gettext, texts.ngettext = find, find_one


def _is_translated() -> bool:
    """Return whether texts are shown in another language, whose words the registry does not declare."""
    return not (translation.get_language() or "en").startswith("en")


@cache
def has_languages() -> bool:
    """Return whether texts depend on the visitor; looking into the settings costs as much as finding a text."""
    return len(settings.LANGUAGES) > 1


@lru_cache(maxsize=1024)
def _only(message: str) -> str:
    return translation.gettext(message)


@lru_cache(maxsize=1024)
def _only_one(singular: str, plural: str, number: int) -> str:
    return translation.ngettext(singular, plural, number)


gettext_lazy = lazy(gettext, str)
