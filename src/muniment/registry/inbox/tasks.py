"""The jobs of the inbox: the checks of items, and the digests of reviewers."""

from muniment.jobs import handlers
from muniment.registry.inbox import checks, digest
from muniment.registry.inbox.waiting import CHECK

handlers.register(
    handlers.Handler(kind=CHECK, work=checks.check_item, lease_s=60, max_attempts=3, back_off_s=30, per_group=2)
)
handlers.register(handlers.Handler(kind="registry.items_wait", work=lambda _: checks.sweep(), lease_s=60), every_s=600)
handlers.register(
    handlers.Handler(kind="registry.digests_due", work=lambda _: digest.send_digests(), lease_s=60), every_s=900
)
