"""Names of languages in those languages, for the menu."""

from functools import cache

from django.conf.locale import LANG_INFO


@cache
def own_name(code: str) -> str:
    """Return the name of a language as its speakers write it; the code itself if it is not known."""
    found = LANG_INFO.get(code) or LANG_INFO.get(code.partition("-")[0], {})
    name = str(found.get("name_local") or code)
    return name[:1].upper() + name[1:]
