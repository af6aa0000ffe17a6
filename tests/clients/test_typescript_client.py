"""The TypeScript client: strictly typed, in Node, and in Chromium on a page of another origin."""

import functools
import http.server
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from services.node import NODE, NPM, TYPESCRIPT, environment, packages
from services.owner import EMAIL, owned_instance
from services.ports import wait_until
from services.product import run

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SECRET = "whsec_" + "c2VjcmV0" * 4
PAGE = """<!doctype html><meta charset="utf-8"><title>Another site</title>
<script type="importmap">{"imports": {"openapi-fetch": "/openapi-fetch.js"}}</script>
<script type="module">import * as muniment from "/dist/index.js"; window.muniment = muniment;</script>"""
IN_THE_BROWSER = """async ([url, token]) => {
    await new Promise((done) => { const ask = () => window.muniment ? done() : setTimeout(ask, 5); ask(); });
    const { Client, NotFoundError } = window.muniment;
    const client = new Client(url, { token }), ids = [], kept = new Map();
    for await (const { id } of client.companies()) ids.push(id);
    const store = {
        place: () => undefined,
        replace: (entries) => entries.forEach(({ kind, id, document }) => kept.set(kind + "/" + id, document)),
        apply: (entries) => store.replace(entries),
    };
    const place = await client.mirror(store);
    const uploaded = await client.owner.upload("tarnwick-tidal", "audit.txt", "The reserves were audited.");
    const waiting = client.changes(place, { ids: ["tarnwick-tidal"] }).next();
    const changes = { description: "Changed from a page of another site." };
    await client.owner.call("update_my_company", { slug: "tarnwick-tidal", changes });
    return {
        companies: ids.length,
        mirrored: kept.size,
        rows: (await client.query("SELECT count(*) AS n FROM people")).data,
        csv: (await client.csv("frameworks", {})).text.split(",")[0],
        verified: (await client.verify("company", "quillmere", kept.get("company/quillmere"))).isCurrent,
        uploaded: uploaded.state,
        heard: (await waiting).value.fields,
        unknown: await client.getCompany("nobody").catch((error) => error instanceof NotFoundError && error.code),
    };
}"""


RECEIVED = """import { createHmac } from "node:crypto";
const body = '{"id":"evt_1","type":"listing.updated","timestamp":"","data":{"url":"https://x.example"}}';
const sentAt = String(Math.floor(Date.now() / 1000));
const key = Buffer.from((process.env["WEBHOOK_SECRET"] ?? "").slice(6), "base64");
const signature = createHmac("sha256", key).update(`evt_1.${sentAt}.${body}`).digest("base64");
const headers = { "webhook-id": "evt_1", "webhook-timestamp": sentAt, "webhook-signature": `v1,${signature}` };
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """
    Return the package as `make dist` builds it, with the packages that it needs.

    Beside it are the samples of its README and our tests, of which the strict types are checked.
    """
    folder = tmp_path_factory.mktemp("typescript") / "muniment-client"
    shutil.copytree(packages(TYPESCRIPT), folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    (folder / "node_modules").symlink_to(TYPESCRIPT / "node_modules")
    tsc(folder, "--noCheck")  # with our tests and samples, all is checked at once
    shutil.copy(HERE / "typescript_client.ts", folder / "checks.ts")
    samples = [sample.replace('"https://registry.example"', 'process.env["REGISTRY_URL"] ?? ""') for sample in jobs()]
    (folder / "samples.ts").write_text("\n".join([samples[0], RECEIVED, *samples[1:]]))
    options = json.loads((folder / "tsconfig.json").read_text())
    options["compilerOptions"] |= {"noEmit": True, "rootDir": "."}
    options["include"] = ["src", "checks.ts", "samples.ts"]
    (folder / "tsconfig.own.json").write_text(json.dumps(options))
    tsc(folder, "--project", "tsconfig.own.json")
    return folder


def jobs():
    blocks = (TYPESCRIPT / "README.md").read_text().split("```ts\n")[1:]
    return [block.partition("```")[0] for block in blocks]


def tsc(folder, *arguments):
    node(folder, folder / "node_modules" / "typescript" / "bin" / "tsc", *arguments)


def node(folder, *arguments, **more):
    done = subprocess.run(
        [NODE, *arguments],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Site:
    """A site of another origin, with a page that has loaded the client."""

    def __init__(self, folder):
        handler = functools.partial(Quiet, directory=folder)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.origin = f"http://localhost:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(package, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(package / "dist", folder / "dist")
    shutil.copy(package / "node_modules" / "openapi-fetch" / "dist" / "index.mjs", folder / "openapi-fetch.js")
    (folder / "index.html").write_text(PAGE)
    opened = Site(folder)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def instance(tmp_path_factory, site):
    with owned_instance(tmp_path_factory.mktemp("product"), allowed_origins=site.origin) as (product, _):
        token = run("user", "token", EMAIL, "--name", "client", data=product.data).stdout.strip()
        wait_until(lambda: product.get("/api/v1/exports").json()["data"], within_s=60, what="the exports")
        yield product, token


STRIPPED = ("--experimental-strip-types", "--no-warnings")


def test_the_client_works_in_node(package, instance):
    product, token = instance
    told = node(package, *STRIPPED, "--test-reporter=spec", "checks.ts", REGISTRY_URL=product.url, REGISTRY_TOKEN=token)
    assert "fail 0" in told


def test_the_readme_runs_as_printed(package, instance, tmp_path):
    product, token = instance
    assert len(jobs()[1:]) == 15
    assert all(len(job.strip().splitlines()) <= 5 for job in jobs()[1:])
    (tmp_path / "audit.txt").write_text("The reserves were audited in 2026.\n")
    given = {"REGISTRY_URL": product.url, "REGISTRY_TOKEN": token, "WEBHOOK_SECRET": SECRET}
    told = node(tmp_path, *STRIPPED, package / "samples.ts", **given)
    for shown in ("tarnwick-tidal Tarnwick", "60 of 60", "Treasurer", "whole", "listing.updated", "isCurrent: true"):
        assert shown in told, shown


def test_the_client_works_on_a_page_of_another_origin(site, instance, browser):
    product, token = instance
    page = browser.new_page()
    page.goto(site.origin)
    assert page.evaluate(IN_THE_BROWSER, [product.url, token]) == {
        "companies": 60,
        "mirrored": 107,
        "rows": [{"n": 41}],
        "csv": "frameworkId",
        "verified": True,
        "uploaded": "ready",
        "heard": ["description"],
        "unknown": "not_found",
    }
    page.close()


def test_the_types_are_those_that_the_contract_makes():
    done = subprocess.run(
        [sys.executable, ROOT / "checks" / "clients.py", "--check-types"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_has_what_it_needs_and_nothing_else(package):
    listed = json.loads(node(package, NPM, "pack", "--dry-run", "--json", "--ignore-scripts"))
    files = {file["path"] for file in listed[0]["files"]}
    assert {"LICENSE", "README.md", "package.json", "dist/index.js", "dist/index.d.ts", "dist/node.js"} <= files
    assert all(file.startswith(("dist/", "src/")) for file in files - {"LICENSE", "README.md", "package.json"})
