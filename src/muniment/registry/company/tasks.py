"""Periodic job: dates of funding rounds."""

from muniment.jobs import handlers
from muniment.registry.company.funding import publish_by_date

handlers.register(handlers.Handler(kind="registry.rounds_due", work=lambda _: publish_by_date()), every_s=600)
