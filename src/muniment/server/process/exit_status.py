"""Exit statuses with a meaning for whatever starts the program."""

from typing import Final

FAILED: Final = 1
"""The start failed; it may succeed when its cause is mended."""
REFUSED: Final = 78
"""
This process must not use its database: another attempt would fail too (EX_CONFIG of sysexits.h).

It has another secret key, a newer version has contracted the database, or the database file is lost or not readable.
"""
