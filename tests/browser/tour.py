"""The stand of the browser's tests: the product with its demo registry and people, and every page worth a visit."""

from contextlib import contextmanager
from pathlib import Path

from services.owner import COMPANY, EMAIL, PASSWORD, owned_registry
from services.prepared import copied
from services.product import Product, run

OWNER, REVIEWER, OPERATOR = EMAIL, "reviewer@harbour.example", "operator@harbour.example"
RICH, PERSON, FRAMEWORK = "saltmarsh-commons", "ilsabet-corrowan", "plain-governance"
"""Of the demo registry: the company with the largest document, a person of COMPANY, and the first framework."""
LEGAL = """
[legal]
imprint = "# Imprint\\n\\nGuild of Ferrymen, Quay 4\\n\\n## Contact\\n\\noffice@harbour.example"
privacy = "# Privacy\\n\\nWe store what you enter, and nothing else."
terms = "# Terms\\n\\n1. Be truthful.\\n2. Be kind."
"""

WIDTHS = {"light": (1280, 900, "light"), "dark": (1280, 900, "dark"), "phone": (360, 740, "light")}


@contextmanager
def stand(folder: Path, **settings: str):
    """Serve the demo registry with an owner, who has drafts, and a reviewer, who has something to decide."""
    with Product(copied(_with_people, folder / "data"), **settings) as product:
        product.wait_ready()
        yield product


def _with_people(data: Path, **settings: str) -> None:
    owned_registry(data, **settings)
    for email, role in ((REVIEWER, "reviewer"), (OPERATOR, "operator")):
        run("user", "create", email, "--role", role, "--password-stdin", data=data, stdin=PASSWORD + "\n", **settings)
    (data / "registry.toml").write_text(LEGAL)


def origin(product: Product) -> str:
    """Return the address under the name that passkeys need."""
    return f"http://localhost:{product.port}"


_signed_in: dict[tuple[str, str], list[dict]] = {}
"""The cookies of each account at each product, by their first sign-in: the form takes twice as long as they do."""


def sign_in(context, product: Product, email: str):
    """Return a page where *email* is signed in, by the session of the last sign-in if that is still open."""
    page = context.new_page()
    home = f"{origin(product)}/{'review' if email in {REVIEWER, OPERATOR} else 'manage'}"
    cookies = _signed_in.get((product.url, email))
    if cookies is not None:
        context.add_cookies(cookies)
        page.goto(home)
        if page.url == home:
            return page
        context.clear_cookies()
    page.goto(f"{origin(product)}/accounts/login/")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(home)
    _signed_in[product.url, email] = context.cookies()
    return page


PUBLIC_PATHS = [
    "/",
    "/companies",
    "/companies?q=energy&status=active",
    "/companies?theme=none-such",
    f"/companies/{COMPANY}",
    f"/companies/{RICH}",
    f"/companies/{RICH}/network",
    f"/compare?c={COMPANY}&c={RICH}",
    "/compare?add=co",
    "/map",
    "/data",
    "/data/query?sql=SELECT+type,+count(*)+AS+n+FROM+companies+GROUP+BY+type",
    "/data/queries/new-companies-by-month",
    "/data/verify",
    "/people",
    f"/people/{PERSON}",
    "/frameworks",
    f"/frameworks/{FRAMEWORK}",
    "/connect",
    "/docs",
    "/docs/guides/read",
    "/docs/rest/companies",
    "/docs/rest/objects",
    "/docs/tools/owner",
    "/companies/no-such-company",
    "/accounts/login/",
    "/accounts/signup/",
    "/accounts/signup/passkey/",
    "/accounts/login/code/",
    "/accounts/password/reset/",
    "/imprint",
    "/privacy",
    "/terms",
]
"""The public pages: lists, one of each kind, and what goes wrong."""
OWNER_PATHS = [
    "/manage",
    "/manage/companies/new",
    f"/manage/companies/{COMPANY}",
    *(f"/manage/companies/{COMPANY}/edit/{step}" for step in ("basics", "about", "links", "team", "token")),
    *(f"/manage/companies/{COMPANY}/{page}" for page in ("preview", "check", "paste/capTable")),
    f"/manage/companies/{COMPANY}/history",
    f"/manage/companies/{COMPANY}/logo",
    *(f"/manage/companies/{COMPANY}/{step}" for step in ("unlist", "leave")),
    "/manage/profile",
    "/manage/profile/history",
    "/manage/profile/unlist",
    "/manage/webhooks",
    "/manage/webhooks/new",
    "/accounts/email/",
    "/accounts/reauthenticate/?next=/manage",
    "/accounts/password/change/",
    "/accounts/2fa/",
    "/accounts/2fa/webauthn/",
    "/accounts/sessions/",
    "/accounts/data/",
    "/accounts/logout/",
]
REVIEWER_PATHS = [
    "/review",
    f"/review/companies/{COMPANY}",
    "/review/people",
    "/review/people/ilsabet-corrowan",
    "/review/people/ilsabet-corrowan/erase",
    "/review/frameworks",
    "/review/frameworks/new",
    "/review/frameworks/plain-governance/specification",
    "/review/replies",
    "/review/settings",
]

FURTHER_PUBLIC_PATHS = [
    *(f"/companies/saltmarsh-commons/{part}" for part in ("about", "team", "proposals", "cap-table", "funding")),
    *(f"/companies/saltmarsh-commons/{part}" for part in ("history", "assessments", "embed")),
    f"/companies/{COMPANY}/assessments/plain-governance",
    "/people/ilsabet-corrowan/positions",
    "/frameworks/plain-governance/scores",
    "/search",
    "/search?q=tide",
    "/search?q=nothing-of-this-name",
    *(f"/docs/guides/{key}" for key in ("connect", "follow", "manage", "webhooks")),
    "/docs/tools/public",
    "/docs/rest/people",
    "/compare",
    "/companies?page=0",
    "/companies/saltmarsh-commons/claim",
    "/reports/shared/none",
    *("/updates", "/updates/new?topic=company&key=saltmarsh-commons", "/updates/sent", "/updates/end/none"),
    "/uploads/none",
    "/accounts/inactive/",
]
"""Public pages for `make screenshots` alone: like those of the tour, or checked by tests of their own."""
FURTHER_OWNER_PATHS = [
    "/manage/tokens",
    "/manage/security",
    "/manage/searches",
    "/manage/searches/new?list=companies&q=tide",
    "/manage/applications",
    f"/manage/companies/{COMPANY}/paste/positions",
    f"/companies/{COMPANY}/domain",
    *(f"/companies/saltmarsh-commons/{form}" for form in ("claim", "suggest")),
    "/people/ilsabet-corrowan/claim",
    "/accounts/2fa/totp/activate/",
    "/accounts/2fa/recovery-codes/generate/",
    "/accounts/2fa/webauthn/add/",
    "/manage/companies/no-such-company",
]
FURTHER_REVIEWER_PATHS = ["/manage", "/review/audit", "/review?kind=claim", "/review/companies/saltmarsh-commons"]
FURTHER_OPERATOR_PATHS = [
    "/operate/setup",
    "/operate/maintenance/retry-logos",
    "/operate/maintenance/remove-logos",
    "/operate/fields/person?new=1",
    "/operate/import/none",
    "/operate/jobs",
    "/operate/jobs?state=failed",
    "/operate/mail",
    "/operate/listings?kind=people",
    "/operate/credits?list=purchases",
]
OPERATOR_PATHS = [
    "/operate",
    "/operate/accounts",
    "/operate/accounts/1",
    "/operate/accounts/1/disable",
    "/operate/listings",
    "/operate/credits",
    "/operate/jobs?state=ended",
    "/operate/mail?state=ended",
    "/operate/storage",
    "/operate/backups",
    "/operate/invitations",
    "/operate/maintenance",
    "/operate/maintenance/renew-feed",
    "/operate/registry",
    *(f"/operate/setup/{step}" for step in ("name", "brand", "words", "legal", "fields", "mail", "import", "done")),
    "/operate/audit",
    "/operate/settings",
    "/operate/import",
    "/operate/listings?q=tide",
    "/operate/accounts?q=nobody",
    "/operate/webhooks",
    "/operate/webhooks/new",
    "/operate/subscriptions",
    "/operate/fields",
    "/operate/fields/company?preset=tokenChain",
    "/operate/queries",
    "/operate/queries/new?sql=SELECT+1",
]
