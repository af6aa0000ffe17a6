"""HTTP itself: methods, addresses, caching, encodings, origins, limits, and everything that is refused."""

import contextlib
import gzip
import json
import re
import socket
import sqlite3
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import quote

import brotli
import jsonschema
import pytest

from contract.shapes import ERROR, check, check_error
from muniment.kernel.zstandard import zstd
from services.prepared import demo_registry, new_instance
from services.product import Product

READS = [
    "/api/v1/companies",
    "/api/v1/companies?pageSize=3&page=2",
    "/api/v1/companies?q=tide",
    "/api/v1/companies/quillmere",
    "/api/v1/companies/" + quote("霧灯測量社"),
    "/api/v1/companies/saltmarsh-commons/cap-table",
    "/api/v1/people",
    "/api/v1/people/teodrick-vashnell",
    "/api/v1/frameworks",
    "/api/v1/frameworks?kind=score",
    "/api/v1/frameworks/plain-governance",
    "/api/v1/stats",
]
EVERY_READ = pytest.mark.parametrize("path", READS)


@pytest.mark.requirement("rest.get-json")
@pytest.mark.requirement("auth.none-for-reading")
@EVERY_READ
def test_every_read_is_json_and_asks_for_no_credentials(demo, path):
    answer = demo.get(path)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json")
    assert "data" in answer.json()
    assert "set-cookie" not in answer.headers
    assert demo.get(path, Authorization="Bearer nonsense", Cookie="a=b", Accept="text/html").body == answer.body


@pytest.mark.requirement("rest.head")
@EVERY_READ
def test_head_is_get_without_the_body(demo, path):
    got, head = demo.get(path), demo.request("HEAD", path)
    assert (head.status, head.body) == (200, b"")
    volatile = {"date", "x-request-id", "ratelimit"}
    assert {k: v for k, v in head.headers.items() if k not in volatile} == {
        k: v for k, v in got.headers.items() if k not in volatile
    }


@pytest.mark.requirement("rest.methods")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "QUERY"])
@pytest.mark.parametrize("path", ["/api/v1/companies", "/api/v1/companies/quillmere", "/api/v1/stats", "/openapi.json"])
def test_other_methods_are_refused_with_those_that_are_allowed(demo, method, path):
    answer = demo.request(method, path, {"Content-Type": "application/json"}, b"{}")
    check_error(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.requirement("rest.unknown-path")
@pytest.mark.parametrize(
    "path",
    ["/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/companies", "/api/v1/company", "/api/v1/companies/a/b"]
    + ["/api/v1//nothing//", "/api/v1/../v1/nothing", "/api/v1/Companies", "/api/v1/companies/quillmere/nothing"],
)
def test_an_unknown_address_is_not_found_as_json(demo, path):
    check_error(demo.get(path), 404, "not_found")


@pytest.mark.requirement("rest.broken-path")
@pytest.mark.parametrize("kind", ["companies", "people", "frameworks"])
@pytest.mark.parametrize(
    "slug",
    [
        "%",
        "%zz",
        "%e",
        "%00",
        "a%00b",
        "%ff",
        "%c3%28",
        "%ed%a0%80",
        "a" * 201,
        "a" * 5000,
        "%2e%2e",
        "..",
        "%2F",
        "a%0ab",
    ]
    + ["%E2%80%AE", "' OR 1=1 --", "<script>", "{slug}"],
)
def test_a_broken_slug_is_not_found_and_never_an_error_or_a_page(demo, kind, slug):
    path = f"/api/v1/{kind}/{slug if slug.isascii() and ' ' not in slug else quote(slug)}".replace(" ", "%20")
    answer = demo.get(path.replace("<", "%3C").replace(">", "%3E"))
    check_error(answer, 404, "not_found")


@pytest.mark.requirement("rest.trailing-slash")
@pytest.mark.parametrize("path", [path for path in READS if "?" not in path])
def test_a_trailing_slash_serves_the_same_without_a_redirect(demo, path):
    assert demo.get(f"{path}/").body == demo.get(path).body
    assert demo.get(f"{path}/").status == 200


@pytest.mark.requirement("errors.envelope")
@pytest.mark.requirement("errors.codes-closed")
def test_every_kind_of_refusal_is_the_envelope(demo):
    for method, path in (("GET", "/api/v1/nothing"), ("POST", "/api/v1/stats"), ("GET", "/api/v1/people?page=0")):
        check(demo.request(method, path).json(), ERROR)


def raw(product, sent):
    """Send bytes as they are and give the whole answer."""
    with socket.create_connection(("127.0.0.1", product.port), timeout=60) as connection:
        connection.sendall(sent)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
            head, separator, body = received.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            if separator and length and len(body) >= int(length[1]):
                break
        return received


@pytest.mark.requirement("errors.server-level")
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"NONSENSE\r\n\r\n", 400),
        (b"GET /api/v1/stats HTTP/9.9\r\n\r\n", 400),
        (b"GET /api/v1/companies/" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", None),
        (b"GET /api/v1/stats HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 200_000 + b"\r\n\r\n", None),
        (b"GET /api/v1/stats HTTP/1.1\r\nHost: x\r\nBroken\x00Name: 1\r\n\r\n", 400),
    ],
    ids=["no http", "no such version", "long address", "long header", "NUL in a name"],
)
def test_errors_of_the_http_server_itself_use_the_envelope_too(demo, sent, status):
    head, _, body = raw(demo, sent).partition(b"\r\n\r\n")
    answered = int(head.split()[1])
    assert 400 <= answered < 500
    assert status is None or answered == status
    assert b"application/json" in head.lower()
    check(json.loads(body), ERROR)


@pytest.mark.requirement("cache.etag")
@EVERY_READ
def test_an_answer_that_is_held_already_is_not_sent_again(demo, path):
    for encoding in ("identity", "gzip", "br", "zstd"):
        answer = demo.get(path, Accept_Encoding=encoding)
        etag = answer.headers["etag"]
        assert re.fullmatch(r'"[^"]+"', etag), "strong"
        for condition in (etag, f'W/"x", {etag}', "*", f"W/{etag}"):
            again = demo.get(path, Accept_Encoding=encoding, If_None_Match=condition)
            assert (again.status, again.body) == (304, b""), (encoding, condition)
            assert again.headers["etag"] == etag
        assert demo.get(path, Accept_Encoding=encoding, If_None_Match='"other"').status == 200


@pytest.mark.requirement("cache.etag")
def test_each_encoding_has_a_tag_of_its_own_and_each_of_them_is_accepted(demo):
    path = "/api/v1/companies"
    tags = {
        encoding: demo.get(path, Accept_Encoding=encoding).headers["etag"] for encoding in ("identity", "gzip", "br")
    }
    assert len(set(tags.values())) == 3
    for tag in tags.values():
        assert demo.get(path, Accept_Encoding="zstd", If_None_Match=tag).status == 304


@pytest.mark.requirement("cache.headers")
@EVERY_READ
def test_answers_say_how_long_caches_may_keep_them(demo, path):
    headers = demo.get(path).headers
    assert headers["cache-control"] == "public, max-age=30, stale-while-revalidate=300"
    assert headers["vary"].lower() in {"accept-encoding", "accept-encoding, accept"}  # lists come as CSV, too
    assert parsedate_to_datetime(headers["last-modified"]) <= datetime.now(UTC)


@pytest.mark.requirement("cache.encodings")
@EVERY_READ
def test_an_answer_comes_in_the_encoding_that_is_asked_for(demo, path):
    plain = demo.get(path, Accept_Encoding="identity").body
    undo = {
        "gzip": gzip.decompress,
        "br": brotli.decompress,
        "zstd": zstd.decompress,
    }
    for encoding, decode in undo.items():
        answer = demo.get(path, Accept_Encoding=encoding)
        if "content-encoding" in answer.headers:
            assert answer.headers["content-encoding"] == encoding
            assert decode(answer.body) == plain
        else:
            assert len(plain) < 1000, "only what is small goes as it is"
            assert answer.body == plain


@pytest.mark.requirement("cache.encodings")
@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("gzip;q=0", None),
        ("gzip;q=0, br", "br"),
        ("identity", None),
        ("compress", None),
        ("br;q=0.1, gzip;q=1", "gzip"),
    ],
)
def test_the_clients_preference_decides_the_encoding(demo, asked, given):
    assert demo.get("/api/v1/companies", Accept_Encoding=asked).headers.get("content-encoding") == given


@pytest.mark.requirement("cors")
@pytest.mark.parametrize("path", ["/api/v1/companies", "/api/v1/companies/missing", "/openapi.json"])
def test_pages_of_any_origin_may_read(demo, path):
    headers = demo.get(path, Origin="https://reader.example").headers
    assert headers["access-control-allow-origin"] == "*"
    exposed = headers["access-control-expose-headers"].lower()
    for name in ("etag", "link", "ratelimit", "retry-after", "www-authenticate"):
        assert name in exposed


@pytest.mark.requirement("cors")
@pytest.mark.requirement("rest.methods")
@pytest.mark.parametrize("path", ["/api/v1/companies", "/api/v1/companies/quillmere", "/api/v1/stats"])
def test_a_preflight_is_answered(demo, path):
    answer = demo.request(
        "OPTIONS",
        path,
        {
            "Origin": "https://reader.example",
            "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "if-none-match",
        },
    )
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "GET" in answer.headers["access-control-allow-methods"]
    allowed = answer.headers["access-control-allow-headers"].lower()
    assert {"*", "if-none-match"} & set(allowed.replace(" ", "").split(","))


@pytest.mark.requirement("request-id")
def test_a_request_id_is_echoed_or_made(demo):
    assert demo.get("/api/v1/stats", X_Request_Id="a-b-1").headers["x-request-id"] == "a-b-1"
    made = {demo.get("/api/v1/stats").headers["x-request-id"] for _ in range(3)}
    assert len(made) == 3
    assert demo.get("/api/v1/nothing", X_Request_Id="a-b-2").headers["x-request-id"] == "a-b-2"


@pytest.mark.requirement("openapi.published")
@pytest.mark.requirement("openapi.complete")
def test_the_contract_is_published_and_names_every_endpoint(demo):
    answer = demo.get("/openapi.json")
    assert answer.status == 200
    contract = answer.json()
    assert contract["openapi"].startswith("3.1")
    paths = set(contract["paths"])
    for path in (
        "companies",
        "companies/{slug}",
        "companies/{slug}/cap-table",
        "people",
        "people/{slug}",
        "frameworks",
    ):
        assert f"/api/v1/{path}" in paths
    assert {"/api/v1/frameworks/{frameworkId}", "/api/v1/stats", "/api/v1/changes", "/api/v1/exports"} <= paths


def _resolve(contract, shape):
    return {**shape, "components": contract["components"]}


@pytest.mark.requirement("openapi.complete")
@EVERY_READ
def test_every_live_answer_validates_against_the_published_contract(demo, path):
    contract = demo.get("/openapi.json").json()
    bare = path.partition("?")[0]
    for template, operations in contract["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), bare):
            responses = operations["get"]["responses"]
            shape = responses["200"]["content"]["application/json"]["schema"]
            jsonschema.Draft202012Validator(_resolve(contract, shape)).validate(demo.get(path).json())
            return
    pytest.fail(f"{path} is not in the contract")


@pytest.mark.requirement("docs.page")
def test_the_reference_page_and_what_it_loads_come_from_the_instance(demo):
    page = demo.get("/docs")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.body.decode())
    assets = [address for address in loaded if re.search(r"\.(js|css)", address)]
    assert assets
    for address in assets:
        assert address.startswith("/"), "served by the instance"
        assert demo.get(address).status == 200
    text = demo.get("/llms.txt")
    assert text.status == 200
    assert "/api/v1/companies" in text.body.decode()


@pytest.mark.requirement("ops.health")
def test_health_readiness_and_metrics_are_answered(demo):
    assert demo.get("/healthz").status == 200
    demo.wait_ready()
    metrics = demo.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert re.search(r"(?m)^# TYPE \w+ counter$", metrics.body.decode())


@pytest.mark.requirement("versioning.deprecation")
@pytest.mark.requirement("deprecation.decorator")
def test_nothing_is_deprecated_without_saying_so_ninety_days_ahead(demo):
    contract = demo.get("/openapi.json").json()
    for template, operations in contract["paths"].items():
        if operations.get("get", {}).get("deprecated"):
            headers = demo.get(template).headers
            since = datetime.fromtimestamp(int(headers["deprecation"].removeprefix("@")), UTC)
            assert parsedate_to_datetime(headers["sunset"]) - since >= timedelta(days=90)
        else:
            # HEAD has the headers of GET, and the stream of changes ends.
            path = template.replace("{", "").replace("}", "")
            assert "deprecation" not in demo.request("HEAD", path).headers


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """One process, for each counts alone: it gives a client 60 requests a minute, 5 at once, and believes one proxy."""
    data = new_instance(tmp_path_factory.mktemp("limited") / "data")
    with Product(data, "--workers", "1", rate_limit="60", rate_burst="5", trusted_proxies="127.0.0.1") as product:
        product.wait_ready()
        yield product


def _until_refused(product, most=20, **headers):
    for number in range(most):
        answer = product.get("/api/v1/stats", **headers)
        if answer.status == 429:
            return number, answer
    raise AssertionError("never refused")


@pytest.mark.requirement("rate.limit")
def test_a_client_over_the_rate_gets_a_retry_after(limited):
    served, answer = _until_refused(limited, X_Forwarded_For="198.51.100.1")
    assert 5 <= served <= 8
    check_error(answer, 429, "bad_request")
    assert int(answer.headers["retry-after"]) >= 1
    assert "ratelimit" in answer.headers
    assert "ratelimit-policy" in answer.headers
    assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.requirement("rate.limit")
def test_a_304_does_not_count_toward_the_rate(limited):
    client = {"X_Forwarded_For": "198.51.100.2"}
    etag = limited.get("/api/v1/stats", **client).headers["etag"]
    for _ in range(30):
        assert limited.get("/api/v1/stats", If_None_Match=etag, **client).status == 304
    assert limited.get("/api/v1/stats", **client).status == 200


@pytest.mark.requirement("rate.limit")
@pytest.mark.parametrize("path", ["/api/v1/companies?q=x{}", "/companies?q=x{}", "/api/v1/stats"])
def test_a_304_for_any_version_counts_toward_the_rate(limited, path):
    client = {"X_Forwarded_For": f"198.51.100.{10 + len(path)}", "If_None_Match": "*"}
    found = [limited.get(path.format(number), **client).status for number in range(20)]
    assert found.count(304) in range(4, 11)
    assert set(found) == {304, 429}
    assert found[-1] == 429


@pytest.mark.requirement("rate.limit")
def test_a_304_of_a_page_is_free_once_the_page_is_kept(limited):
    client = {"X_Forwarded_For": "198.51.100.5"}
    etag = limited.get("/companies", **client).headers["etag"]
    for _ in range(30):
        assert limited.get("/companies", If_None_Match=etag, **client).status == 304


@pytest.mark.requirement("rate.proxies")
def test_behind_a_trusted_proxy_each_client_has_its_own_rate_and_an_ipv6_network_shares_one(limited):
    _until_refused(limited, X_Forwarded_For="2001:db8:1:1::1")
    assert limited.get("/api/v1/stats", X_Forwarded_For="2001:db8:1:1:ffff::2").status == 429
    assert limited.get("/api/v1/stats", X_Forwarded_For="2001:db8:1:2::1").status == 200
    forged = {"Forwarded": "for=198.51.100.77", "X_Real_IP": "198.51.100.78", "CF_Connecting_IP": "198.51.100.79"}
    assert limited.get("/api/v1/stats", X_Forwarded_For="2001:db8:1:1::3", **forged).status == 429


@pytest.mark.requirement("rate.proxies")
def test_without_a_configured_proxy_no_forwarded_address_is_trusted(tmp_path):
    with Product(new_instance(tmp_path / "data"), "--workers", "1", rate_limit="60", rate_burst="5") as product:
        product.wait_ready()
        answers = [product.get("/api/v1/stats", X_Forwarded_For=f"198.51.100.{n}").status for n in range(12)]
    assert 429 in answers


@pytest.mark.sqlite  # a table of its file is taken away
@pytest.mark.requirement("errors.internal")
@pytest.mark.requirement("request-id.internal-error")
def test_an_unexpected_error_is_an_internal_error_with_its_request_id_and_no_detail(tmp_path):
    data = demo_registry(tmp_path / "data")
    with Product(data) as product:
        product.wait_ready()  # one that is still starting would end
        with contextlib.closing(sqlite3.connect(data / "muniment.sqlite3")) as vandal:
            vandal.execute("DROP TABLE published_document")
            vandal.execute("DROP TABLE published_total")
            vandal.execute("DROP TABLE published_meta")
        for path in ("/api/v1/companies/vellumgate", "/api/v1/people/ptolemy-fenn", "/api/v1/companies?q=reef"):
            answer = product.get(path, X_Request_Id="trace-17")
            assert answer.status >= 500
            found = check_error(answer, answer.status, "internal_error")
            assert "trace-17" in found["message"]
            assert "published" not in answer.body.decode()
            assert "sqlite" not in answer.body.decode().lower()
