"""The jobs of erasures."""

from muniment.jobs import handlers
from muniment.registry.people.erasing import ERASED
from muniment.registry.publishing.redaction import compact_database, compact_if_sparse, replace_due_tombstones

handlers.register(handlers.Handler(kind=ERASED, work=lambda _: compact_database(), lease_s=600))
handlers.register(
    handlers.Handler(kind="registry.tombstones_due", work=lambda _: replace_due_tombstones()), every_s=3_600
)
handlers.register(
    handlers.Handler(kind="registry.file_sparse", work=lambda _: compact_if_sparse(), lease_s=600), every_s=3_600
)
