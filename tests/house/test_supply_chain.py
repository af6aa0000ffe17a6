"""What the product is made of: pinned by hash, listed in an SBOM, and compared with known vulnerabilities."""

import contextlib
import hashlib
import http.server
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from services.ports import free_port

ROOT = Path(__file__).parents[2]
LOCK = (
    "alpha==1.0 \\\n    --hash=sha256:"
    + "a" * 64
    + "\nBeta_Two[extra]==2.5 ; python_version < '4' \\\n    --hash=sha256:"
)
LOCK += "b" * 64 + "\n    # via alpha\n"


@contextlib.contextmanager
def vulnerability_database(known, *, answer=None):
    """Serve OSV's /v1/querybatch: *known* maps (name, version) to pages of ids; *answer* replaces what it says."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            asked.append(queries)
            body = json.dumps(answer or {"results": [self._result(each) for each in queries]}).encode()
            self.send_response(200 if self.path == "/v1/querybatch" else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @staticmethod
        def _result(query):
            assert query["package"]["ecosystem"] == "PyPI"
            pages = known.get((query["package"]["name"], query["version"]))
            if not pages:
                return {}
            page = int(query.get("page_token", "0"))
            vulns = [{"id": each, "modified": "2026-01-01T00:00:00Z"} for each in pages[page]]
            return {"vulns": vulns, **({"next_page_token": str(page + 1)} if page + 1 < len(pages) else {})}

        def log_message(self, *_):
            """Write no log line."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def audit(*arguments):
    command = [sys.executable, str(ROOT / "checks" / "audit.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def lock(tmp_path):
    file = tmp_path / "some.lock"
    file.write_text(LOCK)
    return file


def test_a_vulnerable_version_is_named_with_its_lock_and_fails(lock):
    with vulnerability_database({("beta-two", "2.5"): [["GHSA-1"], ["PYSEC-2"]]}) as (url, asked):
        found = audit("--database", url, lock)
    assert found.returncode == 1
    assert "beta-two 2.5 (some.lock): GHSA-1, PYSEC-2" in found.stdout
    assert "2 pinned versions checked" in found.stdout
    assert [len(queries) for queries in asked] == [2, 1]  # the second page of one of them


def test_versions_without_known_vulnerabilities_pass(lock):
    with vulnerability_database({("beta-two", "2.4"): [["GHSA-1"]]}) as (url, _):
        found = audit("--database", url, lock)
    assert (found.returncode, "0 with known vulnerabilities" in found.stdout) == (0, True)


@pytest.mark.parametrize(("required", "code"), [((), 0), (("--required",), 1)])
def test_an_unreachable_database_is_said_plainly(lock, required, code):
    found = audit("--database", f"http://127.0.0.1:{free_port()}", *required, lock)
    assert found.returncode == code
    assert found.stdout.startswith("NOT CHECKED: no vulnerability database is reachable at http://127.0.0.1:")
    assert "0 with known vulnerabilities" not in found.stdout


@pytest.mark.parametrize("answer", [{"results": []}, {"error": "no"}, [1]])
def test_an_answer_that_is_not_the_protocols_counts_as_unreachable(lock, answer):
    with vulnerability_database({}, answer=answer) as (url, _):
        assert "NOT CHECKED" in audit("--database", url, lock).stdout


def test_every_lock_of_the_project_is_checked():
    with vulnerability_database({}) as (url, asked):
        assert audit("--database", url).returncode == 0
    pinned = {(each["package"]["name"], each["version"]) for queries in asked for each in queries}
    for file in (ROOT / "requirements").glob("*.lock"):
        for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", file.read_text(), re.MULTILINE):
            assert (name, version) in pinned


@pytest.mark.proof
def test_the_wheel_comes_with_checksums_and_a_valid_list_of_what_it_needs(tmp_path):
    made = subprocess.run(
        ["make", "dist", f"DIST={tmp_path}"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert made.returncode == 0, made.stdout + made.stderr
    python = ("muniment-*.whl", "muniment-*.tar.gz", "muniment_client-*.whl", "muniment_client-*.tar.gz")
    for pattern in (*python, "muniment-client-*.tgz"):
        assert len(list(tmp_path.glob(pattern))) == 1
    sums = dict(line.split()[::-1] for line in (tmp_path / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in tmp_path.iterdir()
        if file.name != "SHA256SUMS"
    }
    text = (tmp_path / "sbom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    listed = json.loads(text)
    assert listed["metadata"]["component"]["name"] == "muniment"
    pinned = re.findall(r"^([\w.-]+)==([^\s;\\]+)", (ROOT / "requirements/runtime.lock").read_text(), re.MULTILINE)
    assert sorted((each["name"], each["version"]) for each in listed["components"]) == sorted(pinned)
    assert all(each["externalReferences"][0]["hashes"] for each in listed["components"])
