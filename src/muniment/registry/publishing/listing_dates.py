"""Listings with a date in the future: they are at the end of lists until that day, in UTC."""

from datetime import date
from typing import Final

from django.db import transaction
from django.db.models import Q, QuerySet

from muniment.kernel.ids import now
from muniment.registry.models import Company, State
from muniment.registry.publishing.publisher import AffectedRows, publish

CHUNK: Final = 500


def is_ahead(listed_on: date | None) -> bool:
    return listed_on is not None and listed_on > now().date()


def _are_due() -> QuerySet[Company]:
    """Return the published listings whose date says something else than was last published."""
    is_in_future = Q(listed_on__gt=now().date())
    public = Company.objects.filter(state=State.PUBLISHED)
    return public.filter(is_in_future, listed_ahead=False) | public.filter(~is_in_future, listed_ahead=True)


def publish_by_date() -> int:
    """Move the listings whose day has come to their place, and return how many there were."""
    keys = list(_are_due().order_by("pk").values_list("pk", flat=True))
    return sum(_publish_due(keys[start : start + CHUNK]) for start in range(0, len(keys), CHUNK))


def _publish_due(keys: list[int]) -> int:
    with transaction.atomic():
        locked = Company.objects.select_for_update().filter(pk__in=keys).order_by("pk").values_list("pk", flat=True)
        rows = list(_are_due().filter(pk__in=list(locked)).order_by("pk"))
        for company in rows:
            company.listed_ahead, company.updated_at = not company.listed_ahead, now()
        Company.objects.bulk_update(rows, ["listed_ahead", "updated_at"])
        publish(AffectedRows().company_with_dependents(*(company.pk for company in rows)))
    return len(rows)
