"""An owner of a running product who uploads through the tools and curl, as users do."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from services.product import Product, environment

_MAKE = """
import sys, django
django.setup()
from muniment.accounts import tokens
from muniment.accounts.operations import create_account
from muniment.kernel.actor import COMMAND, SCOPES
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import create_company
actor = create_account(COMMAND, sys.argv[1], sys.argv[2] or None).actor("web")
company = create_company(actor, CompanyChange(name="Harbour Cooperative"))
print(company.slug, tokens.create_token(actor, "tests", permitted=SCOPES).text)
"""


def tool(product: Product, token: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool of an owner over HTTP and return structuredContent."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    answer = product.request(
        "POST",
        "/api/manage/mcp",
        {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        },
        json.dumps(body).encode(),
    )
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json()["result"]["structuredContent"]
    return found


class Owner:
    """An account with a token and one company. May be created before or while the product runs."""

    def __init__(
        self, product: Product, email: str = "owner@harbour.example", *, password: str = "", **settings: str
    ) -> None:
        self.product = product
        self.email = email
        made = subprocess.run(
            [sys.executable, "-c", _MAKE, email, password],
            env={**environment(product.data, **settings), "DJANGO_SETTINGS_MODULE": "muniment.settings"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        self.slug, self.token = made.stdout.split()

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool over HTTP and return structuredContent."""
        return tool(self.product, self.token, name, **arguments)

    def begin(self, filename: str, size_bytes: int, **more: Any) -> dict[str, Any]:
        found = self.call(
            "create_document_upload", companySlug=self.slug, filename=filename, sizeBytes=size_bytes, **more
        )
        assert "data" in found, found
        data: dict[str, Any] = found["data"]
        return data


def paste(command: str, folder: Path, *options: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Run *command* in a shell in *folder*, with additional options for curl."""
    if options:
        command = command.replace("curl ", f"curl {shlex.join(options)} ", 1)
    return subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
    )
