"""The edges of the contract: other forms of paths and methods, and the headers that every answer has."""

import json
import re
import unicodedata
from urllib.parse import quote

import pytest

from services.mcp import legacy
from services.product import WITHOUT_FAST_PATH, Product
from services.raw import exchange, status

pytestmark = pytest.mark.requirement("rest.methods", "rest.unknown-path", "rest.broken-path")

JSON = b"Accept: application/json"
HTML = b"Accept: text/html,application/xhtml+xml,application/json;q=0.5"


@pytest.fixture(scope="module")
def both(demo):
    """The same registry served with the fast path and without it."""
    with Product(demo.data) as lane, Product(demo.data, constants=WITHOUT_FAST_PATH) as plain:
        for product in (lane, plain):
            product.wait_ready()
        yield lane, plain


def ask(product, target, *lines, method=b"GET", body=b""):
    head = b"%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % (method, target, product.port)
    length = (b"Content-Length: %d" % len(body),) if body else ()
    sent = head + b"".join(line + b"\r\n" for line in (*lines, *length)) + b"\r\n" + body
    (answer,) = exchange(product.port, sent, hang_up=method == b"HEAD")
    return answer


def content(answer):
    return json.loads(answer.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize(
    "target",
    [
        b"//api/v1/companies/quillmere",
        b"///api/v1/companies/quillmere",
        b"/api//v1///companies//quillmere",
        b"//api/v1/companies?pageSize=3",
        b"//openapi.json",
        b"//.well-known/mcp.json",
        b"//companies/quillmere.json",
    ],
)
def test_repeated_slashes_are_one(both, target):
    for product in both:
        expected = ask(product, re.sub(rb"//+", b"/", target))
        for _ in range(3):
            answer = ask(product, target)
            assert status(answer) == status(expected) == 200
            assert answer.partition(b"\r\n\r\n")[2] == expected.partition(b"\r\n\r\n")[2]


def test_a_tool_is_called_at_a_path_with_two_slashes(both):
    headers, body = legacy("tools/call", {"name": "get_company", "arguments": {"slug": "quillmere"}})
    lines = [f"{name}: {value}".encode() for name, value in headers if name not in {"host", "content-length"}]
    for product in both:
        answer = ask(product, b"//api/mcp", *lines, method=b"POST", body=body)
        assert content(answer)["result"]["isError"] is False


def test_a_health_check_hidden_by_proxies_is_not_shown_at_a_path_with_two_slashes(both):
    for product in both:
        for target in (b"//metrics", b"//readyz", b"//healthz"):
            assert status(ask(product, target)) == 404


@pytest.mark.parametrize(
    ("target", "line"),
    [
        (b"/API/v1/companies", b"Accept: */*"),
        (b"/API/v1/companies", HTML),
        (b"//Api/v1/companies", HTML),
        (b"/API", HTML),
        (b"/api/nothing", HTML),
        (b"/nothing", JSON),
        (b"/companies/no-such-company", JSON),
        (b"/people/nobody-of-this-name", JSON),
        (b"/manage/nothing", JSON),
    ],
)
def test_an_unknown_path_is_told_in_json_to_whoever_asks_for_json_or_for_the_api(both, target, line):
    for product in both:
        answer = ask(product, target, line)
        assert status(answer) == 404
        assert b"\r\naccess-control-allow-origin: *\r\n" in answer.lower()
        error = content(answer)["error"]
        assert error["code"] == "not_found"
        assert error["message"]
        assert error["hint"]


def test_an_unknown_page_stays_a_page_for_a_browser(both):
    for product in both:
        answer = ask(product, b"/nothing", HTML)
        assert status(answer) == 404
        assert b"<!doctype html>" in answer.lower()


def test_a_path_in_upper_case_is_told_with_the_one_that_works(both):
    for product in both:
        hint = content(ask(product, b"/API/V1/Companies"))["error"]["hint"]
        named = re.search(r"GET (/\S+)\.$", hint)[1]
        assert status(ask(product, named.encode())) == 200


@pytest.mark.parametrize("method", [b"FOO", b"get", b"GETX", b"PROPFIND", b"!#$%&'*+.^_`|~"])
@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        (b"/api/v1/companies", b"GET, HEAD, OPTIONS"),
        (b"/api/v1/companies?q=tide", b"GET, HEAD, OPTIONS"),
        (b"/api/mcp", b"POST, OPTIONS"),
        (b"/api/manage/mcp/", b"POST, OPTIONS"),
    ],
)
def test_an_unknown_method_is_not_allowed_and_told_what_is(both, method, target, allowed):
    if method == b"PROPFIND" and b"manage" in target:
        allowed = b""  # a token comes first
    for product in both:
        answer = ask(product, target, method=method)
        assert status(answer) == (405 if allowed else 401)
        assert b"\r\nallow: " + allowed + b"\r\n" in answer or not allowed
        error = content(answer)["error"]
        assert error["code"] == ("method_not_allowed" if allowed else "bad_request")
        assert method.decode() in error["message"] or not allowed


@pytest.mark.parametrize("line", [b"F\x01O / HTTP/1.1", b"FOO /  HTTP/1.1", b"FOO / HTTP/2.7", b"FOO"])
def test_what_is_no_request_is_not_valid(both, line):
    for product in both:
        (answer,) = exchange(product.port, line + b"\r\nHost: x\r\n\r\n")
        assert status(answer) == 400
        assert content(answer)["error"]["code"] == "bad_request"


ACCENTED = "\u03b8\u03b1\u03bb\u03b1\u03c3\u03c3\u03b9\u03bd\u03cc-\u03b1\u03c1\u03c7\u03b5\u03af\u03bf"


@pytest.mark.parametrize(
    "pattern", ["/api/v1/companies/{}", "/api/v1/companies/{}/cap-table", "/companies/{}", "/companies/{}.json"]
)
def test_an_accent_may_be_a_character_of_its_own(both, pattern):
    decomposed = unicodedata.normalize("NFD", ACCENTED)
    assert decomposed != ACCENTED
    for product in both:
        composed, other = (ask(product, pattern.format(quote(slug)).encode(), HTML) for slug in (ACCENTED, decomposed))
        assert status(composed) == status(other) == 200
        assert other.partition(b"\r\n\r\n")[2] == composed.partition(b"\r\n\r\n")[2]


def test_a_tool_takes_a_slug_with_accents_as_characters_of_their_own(both):
    decomposed = unicodedata.normalize("NFD", ACCENTED)
    headers, body = legacy("tools/call", {"name": "get_company", "arguments": {"slug": decomposed}})
    lines = [f"{name}: {value}".encode() for name, value in headers if name not in {"host", "content-length"}]
    for product in both:
        found = content(ask(product, b"/api/mcp", *lines, method=b"POST", body=body))["result"]
        assert found["structuredContent"]["data"]["company"]["id"] == ACCENTED


def test_an_encoded_slash_names_no_path_that_exists(both):
    for product in both:
        for target in (b"/api/v1/companies/quillmere%2F", b"/api/v1/companies/quillmere%2f"):
            answer = ask(product, target)
            assert status(answer) == 404
            told = answer.partition(b"\r\n\r\n")[2]
            assert target in told
            assert b"quillmere/" not in told


SURFACES = {
    "list": (b"/api/v1/companies",),
    "detail": (b"/api/v1/companies/quillmere",),
    "no detail": (b"/api/v1/companies/no-such",),
    "bad parameter": (b"/api/v1/companies?page=0",),
    "contract": (b"/openapi.json",),
    "text for models": (b"/llms.txt",),
    "card": (b"/.well-known/mcp.json",),
    "no card": (b"/.well-known/nothing",),
    "tools by GET": (b"/api/mcp",),
    "owners without a token": (b"/api/manage/mcp",),
    "exports": (b"/api/v1/exports",),
    "no export": (b"/exports/nothing.csv",),
    "page": (b"/companies",),
    "no page": (b"/nothing",),
    "static file": (b"/static/nothing.css",),
    "health": (b"/healthz",),
}


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"OPTIONS", b"DELETE", b"FOO"])
def test_every_answer_forbids_guessing_its_type(both, name, method):
    for product in both:
        for _ in range(3 if method == b"GET" else 1):
            answer = ask(product, *SURFACES[name], method=method)
            assert answer.lower().count(b"\r\nx-content-type-options: nosniff\r\n") == 1


def test_other_answers_forbid_guessing_their_type_too(demo, both):
    lines = b"\r\nx-content-type-options: nosniff\r\n"
    for product in both:
        etag = re.search(rb"\r\netag: ([^\r]+)", ask(product, b"/api/v1/stats"))[1]
        unchanged = ask(product, b"/api/v1/stats", b"If-None-Match: " + etag)
        headers, body = legacy("tools/list")
        sent = [f"{key}: {value}".encode() for key, value in headers if key not in {"host", "content-length"}]
        called = [ask(product, b"/api/mcp", *sent, method=b"POST", body=each) for each in (body, b"{")]
        (invalid,) = exchange(product.port, b"nonsense\r\n\r\n")
        export = product.get("/api/v1/exports").json()["data"][0]
        file = ask(product, b"/exports/" + export["name"].encode())
        assert status(file) == 200
        for answer in (unchanged, *called, invalid, file):
            assert answer.lower().count(lines) == 1
    for constants in (None, WITHOUT_FAST_PATH):
        with Product(demo.data, "--workers", "1", constants=constants, rate_limit="1", rate_burst="1") as product:
            product.wait_ready()
            answers = [ask(product, b"/api/v1/stats") for _ in range(2)]
            assert [status(each) for each in answers] == [200, 429]
            assert all(each.lower().count(lines) == 1 for each in answers)
