"""
What no schema can say of a valid request, told to Schemathesis.

A cursor is opaque and comes from an earlier page, so one that is made up is refused although it is a
text; it is left out of the requests that ought to be accepted. So are a number of the change feed, which must not be
beyond its head, and a chain, which must be that of the feed; and the upper bound of a range, which must not be below
the lower one. What is proven must be in the log, as the first leaf is. A text is rarely a statement in SQL, so one
takes its place.
"""

from typing import Any

import schemathesis
from schemathesis.generation import GenerationMode

LONG_WAITS = {str(seconds) for seconds in range(2, 56)}
MAX_SQL = 10_000


@schemathesis.hook
def before_call(context: Any, case: schemathesis.Case, kwargs: Any) -> None:  # noqa: C901 - one rule after another
    """Leave out what only the service can say, and relevance without words; give a statement, and wait little."""
    if case.query and str(case.query.get("waitSeconds")) in LONG_WAITS:
        case.query["waitSeconds"] = 1
    if case.query and isinstance(case.query.get("sql"), str) and len(case.query["sql"]) > MAX_SQL:
        case.query["sql"] = "x" * (MAX_SQL + 1)  # more would be refused for the length of the URL
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    if case.path == "/api/v1/log/proof":
        case.query = {"index": 0}  # it asks for nothing without one
    if not case.query:
        return
    case.query.pop("cursor", None)
    if case.path == "/api/v1/changes":
        case.query.pop("after", None)
        case.query.pop("chain", None)
    if case.path == "/api/v1/query":
        case.query["sql"] = "SELECT slug, name, treasury FROM companies"
    for name in ("treasury", "team"):
        if f"{name}Min" in case.query:
            case.query.pop(f"{name}Max", None)
    if "listedFrom" in case.query:
        case.query.pop("listedTo", None)
    if case.query.get("sort") == "relevance" and not case.query.get("q"):
        case.query.pop("sort")
