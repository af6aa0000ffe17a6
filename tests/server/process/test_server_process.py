"""A process of the instance: how it starts, what it tells those who watch it, how it ends."""

import base64
import hashlib
import json
import re
import socket
import stat
import threading
from urllib.parse import quote

import pytest

from contract.shapes import check_error
from services.ports import wait_until
from services.prepared import new_instance
from services.product import Product, Served, run
from services.raw import exchange, status


def test_a_first_start_needs_no_set_up_and_keeps_its_secrets_to_itself(tmp_path):
    data = tmp_path / "data"
    with Product(data) as product:
        assert product.data_of("/api/v1/stats")["total"] == 0, "an empty registry is one from its first moment on"
        product.wait_ready()
        assert product.data_of("/api/v1/stats")["total"] == 0
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        keys = list((data / "keys").iterdir())
        assert keys
        assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}


def test_reads_are_answered_while_the_pages_are_still_being_loaded(demo):
    with Product(demo.data) as product:
        assert product.get("/api/v1/companies").status == 200
        waiting = product.get("/readyz")
        assert waiting.status in {200, 503}
        if waiting.status == 503:
            check_error(waiting, 503, "internal_error")
            assert "Not ready" in waiting.json()["error"]["message"]
        assert product.get("/companies").status == 200, "a page that is asked for early waits"
        product.wait_ready()


def test_the_same_registry_is_read_on_every_surface(demo):
    demo.wait_ready()
    assert demo.get("/api/v1/companies/quillmere").status == 200
    assert demo.get("/companies/quillmere").headers["content-type"].startswith("text/html")
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    assert demo.request("POST", "/api/mcp", headers, json.dumps(asked).encode()).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/companies",
        "/people?pageSize=3",
        "/frameworks?kind=score",
        "/stats",
        "/companies/quillmere",
        "/companies/missing",
    ],
)
def test_json_on_the_address_of_a_page_is_its_api_answer(demo, path):
    page, question, query = path.partition("?")
    twin, answer = demo.get(f"{page}.json{question}{query}"), demo.get(f"/api/v1{path}")
    assert (twin.status, twin.body) == (answer.status, answer.body)
    assert twin.headers.get("etag") == answer.headers.get("etag")


def test_health_and_metrics_have_a_listener_of_their_own(demo):
    assert demo.get("/healthz").json() == {"status": "up"}
    demo.wait_ready()
    told = demo.get("/readyz").json()
    assert told["status"] == "ready"
    assert told.keys() - {"status"} == ({"edition", "newest", "behindSeconds"} if Served.cluster else set())
    assert demo.get("/api/v1/stats").status == 200
    text = demo.metrics()
    process = r'process="\d",' if Served.workers > 1 else ""
    counted = rf'^muniment_requests_total\{{method="GET",{process}status="200",surface="api"\}} \d+\.0$'
    assert re.search(counted, text, re.MULTILINE)
    shown = re.findall(r"^muniment_edition(?:\{[^}]*\})? [1-9]\d*\.0$", text, re.MULTILINE)
    assert len(shown) == Served.workers
    for line in text.splitlines():
        assert line.startswith("# ") or re.fullmatch(r"[a-z_]+(\{[^}]*\})? -?[\d.]+(e[+-]\d+)?", line)
    assert "cache-control" in demo.get("/metrics").headers
    check_error(demo.request("POST", "/healthz"), 405, "method_not_allowed")


def test_a_data_folder_that_is_gone_is_not_ready(tmp_path):
    data = new_instance(tmp_path / "data")
    with Product(data) as product:
        product.wait_ready()
        data.rename(tmp_path / "moved")
        wait_until(lambda: product.get("/readyz").status == 503, within_s=60, what="the missing folder to be noticed")
        (tmp_path / "moved").rename(data)
        product.wait_ready()


def test_an_instance_without_its_document_store_serves_reads_and_says_so(tmp_path):
    gone = "s3://ident:secret@bucket/documents?region=auto&endpoint=http://127.0.0.1:9"
    with Product(new_instance(tmp_path / "data"), storage_url=gone) as product:

        def told():
            answer = product.get("/readyz")
            return answer.status == 200 and "document store does not answer" in answer.json()["status"]

        wait_until(told, within_s=60, what="the store to be missed", every_s=0.2)
        refused = product.get("/readyz?writes")
        check_error(refused, 503, "internal_error")
        assert "document store does not answer" in refused.json()["error"]["message"]
        assert product.get("/api/v1/stats").status == 200
        assert product.get("/healthz").status == 200


def test_a_request_that_arrives_before_the_application_is_mounted_waits(demo):
    with Product(demo.data) as product:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        assert product.request("POST", "/api/mcp", headers, json.dumps(asked).encode()).status == 200
        assert product.request("POST", "/api/manage/mcp", headers, json.dumps(asked).encode()).status == 401
        assert product.request("PUT", "/uploads/no-such-link", {}, b"x").status == 404
        assert product.get("/.well-known/mcp.json").status == 200


def test_a_browser_over_the_rate_gets_an_error_page(demo):
    with Product(demo.data, "--workers", "1", rate_limit="1", rate_burst="1") as product:  # each process counts alone
        product.get("/companies")
        page = product.get("/companies", Accept="text/html,*/*;q=0.8")
        assert page.status == 429
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert int(page.headers["retry-after"]) >= 1
        assert b"<h1>Too many requests" in page.body
        assert b"pageSize" not in page.body
        assert page.headers["content-language"] == "en"
        asked = {"Accept": "text/html", "Accept-Language": "de-AT,en;q=0.5"}
        german = product.get("/companies", **asked)
        assert (german.status, german.headers["content-language"]) == (429, "de")
        assert '<html lang="de" dir="ltr">' in german.body.decode()
        assert "<h1>Zu viele Anfragen</h1>" in german.body.decode()
        assert f"Warten Sie {german.headers['retry-after']} s und" in german.body.decode()  # right of one second too
        # Its style is allowed by its digest, and nothing else is loaded.
        style = german.body.decode().partition("<style>")[2].partition("</style>")[0]
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert german.headers["content-security-policy"] == f"default-src 'none'; style-src 'sha256-{digest}'"
        check_error(product.get("/companies"), 429, "bad_request")
        check_error(product.get("/api/v1/stats", Accept="text/html"), 429, "bad_request")


def test_a_port_in_use_is_reported_with_a_hint(demo):
    done = run("serve", "--port", str(demo.port), data=demo.data, check=False)
    assert done.returncode == 1
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.requirement("request-id")
def test_an_id_that_is_not_sane_is_replaced(demo):
    for given in ("a b", "a" * 129, "<script>", ""):
        assert demo.get("/api/v1/stats", X_Request_Id=given).headers["x-request-id"] != given
        assert demo.get("/companies", X_Request_Id=given).headers["x-request-id"] != given


def test_requests_are_logged_with_their_ids_and_without_secrets(demo):
    with Product(demo.data, log_requests="on") as product:
        product.get("/api/v1/stats?token=verysecret1", X_Request_Id="find-me-1")
        for kind in ("mun_pat_", "mun_at_handle_", "mun_rt_handle_", "mun%5Fac%5F", "x-mun_pat_"):
            product.get(f"/api/v1/companies/{kind}verysecret4?q={kind}verysecret5")
            product.get(f"/companies/{kind}verysecret6/{kind}verysecret7")
        for link in ("/manage/invitations/verysecret8", "/reports/shared/verysecret9"):
            product.get(link)
            product.get(f"/accounts/login/?next={quote(link, safe='')}%3Fx&more=1")
        product.get("/api/v1/nothing?code=verysecret2", X_Request_Id="find-me-2", Authorization="Bearer verysecret3")
        wait_until(lambda: "find-me-2" in product.output(), within_s=60, what="the line")
        lines = [json.loads(line) for line in product.output().splitlines() if line.startswith("{")]
    told = {line["requestId"]: line for line in lines if "requestId" in line}
    assert told["find-me-1"]["message"].startswith("GET /api/v1/stats")
    assert told["find-me-2"]["message"].endswith(" 404")
    assert "mun_pat_***" in product.output()
    assert "verysecret" not in product.output()


def test_an_early_half_close_is_still_answered(demo):
    demo.wait_ready()
    for target in (b"/api/v1/stats", b"/companies", b"/api/v1/companies?q=tide"):
        sent = b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n"
        (answer,) = exchange(demo.port, sent, hang_up=True)
        assert status(answer) == 200


ASKED = b"GET /api/v1/companies?pageSize=100 HTTP/1.1\r\nHost: x\r\n\r\n"


def fetch(connection):
    """Ask once; give the bytes that came and whether they are a whole answer."""
    received = b""
    try:
        connection.sendall(ASKED)
        while chunk := connection.recv(1 << 16):
            received += chunk
            head, separator, body = received.partition(b"\r\n\r\n")
            if separator and len(body) >= int(re.search(rb"content-length: (\d+)", head)[1]):
                return received, True
    except OSError:
        pass
    return received, False


def test_sigterm_under_load_cuts_no_answer(demo):
    product = Product(demo.data).start()
    product.wait_ready()
    cut, whole = [], [0]

    def ask(connection):
        with connection:
            while True:
                received, is_whole = fetch(connection)
                if not is_whole:
                    cut.extend([len(received)] if received else [])
                    return
                whole[0] += 1

    # Connected first: a thread that gets no processor until the load is there would find no server.
    connections = [socket.create_connection(("127.0.0.1", product.port), timeout=60) for _ in range(6)]
    askers = [threading.Thread(target=ask, args=(connection,)) for connection in connections]
    for asker in askers:
        asker.start()
    wait_until(lambda: whole[0] > 100, within_s=60, what="load")
    assert product.stop() == 0
    for asker in askers:
        asker.join(60)
    assert cut == []


def test_a_stop_while_it_still_starts_is_quick_and_clean(demo, monkeypatch):
    monkeypatch.setattr(Served, "forks", False)  # the end of the interpreter is tested, which is another in a fork
    product = Product(demo.data).start()
    assert product.stop(within_s=60) == 0
    assert "Traceback" not in product.output()


def test_a_demo_is_ready_when_its_registry_is_there(tmp_path):
    with Product(new_instance(tmp_path / "data"), "--demo") as product:
        product.wait_ready(within_s=120)
        assert {each.status for each in product.get_of_each("/api/v1/companies/quillmere")} == {200}
        assert "Token of the owner" in product.output()
