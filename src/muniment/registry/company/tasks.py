"""Periodic jobs: dates of funding rounds and listings."""

from muniment.jobs import handlers
from muniment.registry.company.funding import publish_by_date
from muniment.registry.publishing import listing_dates

handlers.register(handlers.Handler(kind="registry.rounds_due", work=lambda _: publish_by_date()), every_s=600)
handlers.register(
    handlers.Handler(kind="registry.listings_due", work=lambda _: listing_dates.publish_by_date()), every_s=600
)
