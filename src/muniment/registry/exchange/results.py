"""The sentences that say what an import or an undo did: they are stored with it, and pages shorten them."""

from typing import Final

from muniment.kernel.phrases.phrase import marked

IMPORTED: Final = marked("{kind}: {new:,} new, {changed:,} changed, {unchanged:,} unchanged")
"""The rows of one kind."""
NOTHING_INVALID: Final = marked("no invalid rows")
UNDONE: Final = marked("{restored:,} rows restored, {unpublished:,} unpublished, {kept:,} kept")
