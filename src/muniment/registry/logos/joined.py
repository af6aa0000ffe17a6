"""The fetched logo of a company, as a part of queries."""

from django.db.models import Case, F, When


def fetched_logo(to_company: str = "") -> Case:
    """
    Return the digest of the logo that was fetched from the URL which a company names now; else NULL.

    Args:
        to_company: the path from the table of the query, such as ``company__``.
    """
    is_current = {f"{to_company}fetched_logo__source": F(f"{to_company}icon")}
    return Case(When(**is_current, then=F(f"{to_company}fetched_logo__digest")), default=None)
