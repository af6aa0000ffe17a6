"""Translation of constant texts, which a page has dozens of: in each language, each is looked up once."""

from functools import lru_cache
from typing import Any

from django.utils import translation
from django.utils.functional import lazy
from django.utils.translation import trans_real

from muniment.languages.catalogues import SOURCE
from muniment.languages.offered import offered
from muniment.languages.speaking import language
from muniment.registry_toml.applied import current
from muniment.registry_toml.wording import reworded


def gettext(message: str) -> str:
    """Translate as Django does; Django's own look-up costs 6 microseconds."""
    return translation.gettext(message) if is_reworded() else _known(language(), message)


def ngettext(singular: str, plural: str, number: int) -> str:
    """Translate as Django does a text that depends on a number."""
    if is_reworded():
        return translation.ngettext(singular, plural, number)
    return _known_number(language(), singular, plural, number)


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
        return trans_real.gettext(message) if _is_translated() else reworded(trans_real.gettext(message))

    def find_one(singular: str, plural: str, number: int) -> str:
        found = trans_real.ngettext(singular, plural, number)
        return found if _is_translated() else reworded(found)

    find.is_worded = True  # type: ignore[attr-defined]  # a mark of ours
    texts.gettext, texts.ngettext = find, find_one


def _is_translated() -> bool:
    """Return whether texts are shown in another language, whose words the registry does not declare."""
    return language() != SOURCE


def has_languages() -> bool:
    """Return whether texts depend on the visitor."""
    return len(offered()) > 1


@lru_cache(maxsize=16_384)
def _known(_language: str, message: str) -> str:
    return translation.gettext(message)


@lru_cache(maxsize=4096)
def _known_number(_language: str, singular: str, plural: str, number: int) -> str:
    return translation.ngettext(singular, plural, number)


gettext_lazy = lazy(gettext, str)
