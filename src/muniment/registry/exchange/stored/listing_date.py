"""The listing date of a row: two columns, which the history shows as one value."""

from typing import Final

from muniment.kernel.json import JSONObject
from muniment.schema.kinds import DATE, MONTH

_DATES: Final = ("listed_on", "listed_month_only")


def without_dates(values: JSONObject) -> JSONObject:
    return {name: value for name, value in values.items() if name not in _DATES}


def listing_date(values: JSONObject, columns: JSONObject) -> JSONObject:
    """Return a listing date that is among changed *values* as the history has it: its day, or only its month."""
    if not values.keys() & {*_DATES}:
        return {}
    day, is_month = (values.get(name, columns[name]) for name in _DATES)
    if day is None or not is_month:
        return {"listedAt": DATE.wire(day)}
    return {"listedAt": None, "createdAt": MONTH.wire(day)}
