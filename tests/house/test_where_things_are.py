"""A newcomer finds the module for a standard term: the term is in its path or in the first line of its docstring."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "muniment"

MODULES = {
    "retry on deadlock": "store/database/retry",
    "response cache": "store/cache",
    "filters, sort, cursors": "store/queries",
    "search tokenizer": "store/search_text",
    "database cache for rate limits": "store/database/counter_cache",
    "change feed": "store/postgres_feed",
    "replica": "store/replica",
    "index state": "store/snapshot_state",
    "ASGI application": "server/app/app",
    "fast path": "server/fastpath/protocol",
    "HTTP limits": "server/http/http_limits",
    "start-up": "server/app/startup",
    "published file": "server/app/registry_file",
    "database gauges": "server/observability/database_metrics",
    "pre-fork worker": "server/process/worker_process",
    "polling": "server/process/poller",
    "WSGI adapter": "server/app/wsgi",
    "thread pool": "server/app/threads",
    "security headers": "web/requests/security_headers",
    "login required": "web/requests/access",
    "idempotent forms": "web/requests/once",
    "error pages": "web/requests/errors",
    "pagination": "web/requests/pagination",
    "presenter": "web/presenters/company",
    "form pages": "web/form_pages",
    "pictures": "web/views/manage/pictures",
    "owners": "web/views/manage/owners",
    "profile": "web/views/manage/profile",
    "claims": "web/views/public/claims",
    "notifications": "registry/review/notifications",
    "review queue": "registry/inbox/items",
    "claims and suggestions": "registry/review/claims",
    "listings and their owners": "registry/company/listings",
    "change of a listing": "registry/company/changes",
    "truncation": "mcp/tools/answers",
    "origin": "mcp/protocol/http",
    "declarations": "mcp/declarations",
    "messages": "mcp/protocol/transport",
    "clean-up": "documents/cleanup",
    "upload endpoint": "documents/http",
    "token authentication": "oauth/token_authentication",
    "revocation": "accounts/revocation",
    "encryption at rest": "encryption",
}


def _plain(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())


@pytest.mark.parametrize(("term", "module"), MODULES.items(), ids=MODULES)
def test_a_term_leads_to_its_module(term, module):
    path = SOURCE / f"{module}.py"
    first_line = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0]
    for word in re.split(r", | and | for | on | at ", term):
        assert _plain(word) in _plain(module) + " " + _plain(first_line), f"{module}: {first_line}"
