"""The encodings of text files that the page of an import offers."""

import codecs
from typing import Final

from django.utils.translation import gettext_lazy

ENCODINGS: Final = {
    "utf-8": gettext_lazy("Unicode (UTF-8)"),
    "cp1252": gettext_lazy("Western European (Windows-1252)"),
    "iso8859_15": gettext_lazy("Western European (ISO 8859-15)"),
    "mac_roman": gettext_lazy("Western European (Mac)"),
    "cp850": gettext_lazy("Western European (DOS)"),
    "cp1250": gettext_lazy("Central European (Windows-1250)"),
    "iso8859_2": gettext_lazy("Central European (ISO 8859-2)"),
    "mac_latin2": gettext_lazy("Central European (Mac)"),
    "cp1257": gettext_lazy("Baltic (Windows-1257)"),
    "cp1251": gettext_lazy("Cyrillic (Windows-1251)"),
    "koi8_r": gettext_lazy("Cyrillic (KOI8-R)"),
    "iso8859_5": gettext_lazy("Cyrillic (ISO 8859-5)"),
    "cp1253": gettext_lazy("Greek (Windows-1253)"),
    "cp1254": gettext_lazy("Turkish (Windows-1254)"),
    "cp1255": gettext_lazy("Hebrew (Windows-1255)"),
    "cp1256": gettext_lazy("Arabic (Windows-1256)"),
    "utf-16": gettext_lazy("Unicode (UTF-16)"),
    "cp932": gettext_lazy("Japanese (Shift JIS)"),
    "euc_jp": gettext_lazy("Japanese (EUC-JP)"),
    "gb18030": gettext_lazy("Chinese (GB 18030)"),
    "big5": gettext_lazy("Chinese (Big5)"),
    "cp949": gettext_lazy("Korean (EUC-KR)"),
}
"""By the names that a guess has, which former names of the same encoding become (see :func:`encoding_named`)."""
_SUPERSETS: Final = {"utf-8-sig": "utf-8", "shift_jis": "cp932", "euc_kr": "cp949"}


def encoding_named(name: str) -> str:
    """Return the name that the list of encodings has for one: "iso8859-2" and "latin2" are "iso8859_2"."""
    try:
        codec = codecs.lookup(_SUPERSETS.get(name, name)).name
    except LookupError:
        return name
    return next((each for each in ENCODINGS if codecs.lookup(each).name == codec), name)
