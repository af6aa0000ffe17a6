"""The saved queries of a registry: those that every registry has, and those that ``registry.toml`` declares."""

from typing import Final

from muniment.kernel.phrases.phrase import marked
from muniment.registry_toml.applied import current
from muniment.registry_toml.document import Query, RegistrySettings

COMPANIES_BY_COUNTRY: Final = (
    "WITH places AS (\n"
    "  SELECT company, country FROM addresses WHERE country IS NOT NULL\n"
    "  UNION SELECT company, derived_countries FROM derived_countries)\n"
    "SELECT country, count(*) AS companies FROM places\n"
    "GROUP BY country ORDER BY companies DESC, country LIMIT 25"
)
"""A company counts once in each country in which it has an address, as on the map."""
SHIPPED: Final = (
    Query(
        "people-in-several-teams",
        marked("People in several teams"),
        marked("People who hold positions at more than one company."),
        "SELECT name, slug AS person, company_count AS companies,\n"
        "  (SELECT group_concat(company, ', ') FROM\n"
        "    (SELECT DISTINCT company FROM positions WHERE person = slug)) AS teams\n"
        "FROM people WHERE company_count > 1\n"
        "ORDER BY companies DESC, name LIMIT 500",
        "none",
    ),
    Query(
        "open-votes",
        marked("Open votes"),
        marked("Votes that are open today, by the day on which they end."),
        "SELECT end_date, company, title FROM proposals\n"
        "WHERE status = 'active' AND end_date >= date('now')\n"
        "ORDER BY end_date, company",
        "none",
    ),
    Query(
        "narrowly-failed-votes",
        marked("Narrowly failed votes"),
        marked("Votes that failed by less than five percent of all votes."),
        "SELECT company, title, votes_for, votes_against, end_date FROM proposals\n"
        "WHERE status = 'failed' AND votes_for + votes_against > 0\n"
        "  AND abs(votes_for - votes_against) < 0.05 * (votes_for + votes_against)\n"
        "ORDER BY end_date DESC",
        "none",
    ),
    Query(
        "share-of-the-largest-holders",
        marked("Share of the largest holders"),
        marked("What the five largest holders of each company have together, in percent."),
        "WITH ranked AS (\n"
        "  SELECT company, percentage,\n"
        "    row_number() OVER (PARTITION BY company ORDER BY percentage DESC) AS place\n"
        "  FROM holders WHERE percentage IS NOT NULL)\n"
        "SELECT company, round(sum(percentage), 1) AS percent FROM ranked\n"
        "WHERE place <= 5 GROUP BY company ORDER BY percent DESC, company",
        "",
    ),
    Query(
        "listings-without-a-description",
        marked("Listings without a description"),
        marked("Companies that say nothing about themselves yet, the newest change first."),
        "SELECT slug AS company, name, website, updated_at FROM companies\n"
        "WHERE coalesce(description, '') = ''\n"
        "ORDER BY updated_at DESC, slug",
        "none",
    ),
    Query(
        "new-companies-by-month",
        marked("New companies by month"),
        marked("How many companies were listed in each month."),
        "SELECT listed_month AS month, count(*) AS companies FROM companies\n"
        "WHERE listed_month IS NOT NULL GROUP BY month ORDER BY month",
        "line",
    ),
    Query(
        "treasury-by-industry",
        marked("Treasury by industry"),
        marked("The average treasury of the companies in each industry that state one."),
        # An amount with a note is something else, such as a sum of grants.
        "SELECT industry, round(avg(treasury)) AS average, count(treasury) AS companies FROM companies\n"
        "WHERE treasury IS NOT NULL AND treasury_note IS NULL AND industry IS NOT NULL\n"
        "GROUP BY industry ORDER BY average DESC LIMIT 25",
        "bar",
    ),
    Query(
        "companies-by-country",
        marked("Companies by country"),
        marked("How many companies have an address in each country, as on the map."),
        COMPANIES_BY_COUNTRY,
        "bar",
    ),
    Query(
        "most-frequent-themes",
        marked("Most frequent themes"),
        marked("The themes that most companies name."),
        "SELECT theme, count(*) AS companies FROM themes\nGROUP BY theme ORDER BY companies DESC, theme LIMIT 25",
        "bar",
    ),
    Query(
        "similar-companies",
        marked("Similar companies"),
        marked("Companies that have the most themes in common with one company, which you name by its slug."),
        "SELECT other.company, count(*) AS shared, group_concat(other.theme, ', ') AS themes\n"
        "FROM themes own JOIN themes other USING (theme)\n"
        "WHERE own.company = :company AND other.company <> :company\n"
        "GROUP BY other.company ORDER BY shared DESC, other.company LIMIT 25",
        "none",
    ),
)


def saved_queries() -> tuple[Query, ...]:
    """Return the queries of the file, those of the console, and those that every registry has; the first of a slug."""
    return queries_of(current())


def queries_of(settings: RegistrySettings) -> tuple[Query, ...]:
    by_slug: dict[str, Query] = {}
    for query in (*settings.queries, *settings.console_queries, *SHIPPED):
        by_slug.setdefault(query.slug, query)
    return tuple(by_slug.values())


def saved_query(slug: str) -> Query | None:
    return next((query for query in saved_queries() if query.slug == slug), None)
