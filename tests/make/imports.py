"""Imports in the browser: their jobs run at once."""

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile

from muniment.jobs import queue
from muniment.registry.imports.stages import LANE


def work() -> None:
    """Run the jobs of imports that are due, as a worker does."""
    while run := queue.claim("tests", LANE):
        run.finish(run.handler.work(run))


def upload(client: Any, content: bytes | str, name: str = "members.csv", **more: Any) -> str:
    """Upload a table, let it be read, and return the address of its page."""
    body = content.encode() if isinstance(content, str) else content
    response = client.post("/operate/import", {"file": SimpleUploadedFile(name, body), **more})
    assert response.status_code == 302, response.content.decode()
    work()
    return str(response["Location"])
