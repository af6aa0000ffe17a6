"""The three steps through the running server: the printed line in a real shell, on a folder and on S3."""

import asyncio
import hashlib
import json
import re
import threading
import time
from pathlib import Path

import httpx
import httpx2
import psutil
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from make import files
from muniment.documents.storage import Storage
from services.prepared import new_instance
from services.product import Product
from services.s3 import S3
from services.uploads import Owner, paste

PASSWORD = "four harbours, one tide"
NAME = "it's the (first) 報告; & more.pdf"


class Memory:
    """The largest resident size of a process while the context lasts, beyond that at its beginning."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._before = self._process.memory_info().rss
        self._peak = self._before
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self._peak = max(self._peak, self._process.memory_info().rss)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join(5)

    @property
    def extra_mb(self) -> float:
        return (self._peak - self._before) / (1 << 20)


@pytest.fixture(params=["folder", "s3"])
def settings(request, tmp_path):
    if request.param == "folder":
        yield {}
        return
    with S3(tmp_path / "served") as server:
        yield {"storage_url": server.url()}


def go_all_the_way(tmp_path: Path, settings: dict[str, str], size_mb: int) -> tuple[float, float]:
    """Send a file by the printed line and fetch it again; gives extra megabytes and seconds of the transfer."""
    content = files.pdf("The board meets.", size_bytes=size_mb << 20)
    (tmp_path / NAME).write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    size = len(content)
    del content
    with Product(new_instance(tmp_path / "data"), **settings, document_max_mb=str(size_mb + 1)) as product:
        product.wait_ready()
        owner = Owner(product, **settings)
        warm = owner.begin("warm.txt", 9000)
        (tmp_path / "warm.txt").write_bytes(b"x" * 9000)
        assert json.loads(paste(warm["command"], tmp_path).stdout)["data"]["state"] == "uploaded"
        link = owner.begin(NAME, size, contentType="application/pdf", sha256=sha256)
        began = time.monotonic()
        with Memory(product.pid) as memory:
            sent = paste(link["command"], tmp_path, "-sS")
        seconds = time.monotonic() - began
        assert sent.returncode == 0, sent.stderr
        assert json.loads(sent.stdout)["data"]["sha256"] == sha256
        completed = owner.call("complete_document_upload", uploadId=link["uploadId"])
        assert completed["data"]["state"] == "ready", completed
        again = paste(link["command"], tmp_path, "-sS", "-w", "\n%{http_code}")
        assert again.stdout.splitlines()[-1] == "404"
        storage = Storage(product.data / "blobs", settings.get("storage_url", ""))
        [blob] = [blob for blob in storage.blobs("documents") if link["uploadId"] in blob.key]
        digest = hashlib.sha256()
        for piece in storage.stream(blob.key):
            digest.update(piece)
        assert digest.hexdigest() == sha256
    return memory.extra_mb, seconds


@pytest.mark.whole(keeps=1)
@pytest.mark.requirement("upload.three-steps")
@pytest.mark.requirement("documents.link")
def test_20_mb_go_by_the_printed_line_with_little_memory(tmp_path, settings):
    extra_mb, _ = go_all_the_way(tmp_path, settings, 20)
    assert extra_mb < 30


@pytest.mark.requirement("tools.manage.documents")
def test_the_official_client_goes_all_the_way_and_the_page_takes_the_deletion_back(tmp_path):
    content = files.pdf("The board meets.")
    (tmp_path / "report.pdf").write_bytes(content)
    with Product(new_instance(tmp_path / "data")) as product:
        product.wait_ready()
        owner = Owner(product, password=PASSWORD)

        async def by_tools() -> str:
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {owner.token}"}) as web,
                Client(streamable_http_client(f"{product.url}/api/manage/mcp", http_client=web)) as client,
            ):

                async def call(name, **arguments):
                    return (await client.call_tool(name, arguments)).structured_content

                size = len(content)
                link = (
                    await call("create_document_upload", companySlug=owner.slug, filename="report.pdf", sizeBytes=size)
                )["data"]
                sent = await asyncio.to_thread(paste, link["command"], tmp_path, "-sS")
                assert json.loads(sent.stdout)["data"]["state"] == "uploaded"
                kept = (await call("complete_document_upload", uploadId=link["uploadId"]))["data"]
                assert kept["state"] == "ready"
                listed = await call("list_my_documents")
                assert [each["documentId"] for each in listed["data"]] == [kept["documentId"]]
                await call("delete_document", documentId=kept["documentId"])
                assert (await call("list_my_documents"))["data"] == []
                small = {"companySlug": owner.slug, "filename": "a.txt"}
                assert "data" in await call("upload_document", **small, text="x" * 8192)
                refused = await call("upload_document", **small, text="x" * 8193)
                assert "create_document_upload" in refused["error"]["hint"]
                return str(kept["documentId"])

        document_id = asyncio.run(by_tools())
        with httpx.Client(base_url=product.url, follow_redirects=True) as browser:
            entry = browser.get("/accounts/login/")
            browser.post(
                "/accounts/login/",
                data={"login": owner.email, "password": PASSWORD, "csrfmiddlewaretoken": _csrf(entry.text)},
                headers={"Referer": f"{product.url}/accounts/login/"},
            )
            page = browser.get("/manage/documents")
            address = f"/manage/documents/{document_id}"
            assert f"{address}/restore" in page.text
            back = browser.post(
                f"{address}/restore",
                data={"csrfmiddlewaretoken": _csrf(page.text)},
                headers={"Referer": f"{product.url}/manage/documents"},
            )
            assert "report.pdf restored." in back.text
            fetched = browser.get(f"{address}/file")
            assert fetched.content == content
            assert fetched.headers["content-disposition"].startswith("attachment")
            assert "/downloads/" in str(fetched.url)
        assert str(fetched.url).rpartition("/")[2] not in product.output()


def _csrf(page: str) -> str:
    return re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]


@pytest.mark.proof
def test_200_mb_go_by_the_printed_line_with_little_memory(tmp_path, settings, record_property):
    extra_mb, seconds = go_all_the_way(tmp_path, settings, 200)
    record_property("extra_mb", extra_mb)
    print(f"200 MB on {settings or 'the folder'}: {extra_mb:.1f} MB more, {seconds:.1f} s")  # noqa: T201 - a figure
    assert extra_mb < 30


def test_curl_gets_413_at_once_and_may_send_the_right_file_afterwards(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x" * (3 << 20))
    with Product(new_instance(tmp_path / "data")) as product:
        product.wait_ready()
        owner = Owner(product)
        link = owner.begin("a.txt", 1 << 20)
        for options in ((), ("-H", "Transfer-Encoding: chunked"), ("-H", "Expect:")):
            sent = paste(link["command"], tmp_path, "-sS", "-w", "\n%{http_code}", *options)
            assert sent.stdout.splitlines()[-1] == "413", (options, sent)
        assert list((product.data / "blobs").rglob("*/*/*")) == []
        (tmp_path / "a.txt").write_bytes(b"x" * (1 << 20))
        sent = paste(link["command"], tmp_path, "-sS", "-w", "\n%{http_code}")
        assert sent.stdout.splitlines()[-1] == "201", sent
        assert owner.call("complete_document_upload", uploadId=link["uploadId"])["data"]["state"] == "ready"
        assert link["url"].rpartition("/")[2] not in product.output()
