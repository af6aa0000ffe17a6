"""Hostile requests to every surface, made from a seed: what is known about a surface, filled with what may break it."""

import json
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, urlencode

from services.mcp import legacy, modern
from services.stripe import signed


class Request(NamedTuple):
    """One request, as sent."""

    surface: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


class Known(NamedTuple):
    """What the generator knows of an instance: its pages with their fields, its tools, and credentials."""

    paths: list[str]
    """Patterns of the pages' addresses, with ``{}`` for a part."""
    fields: list[str]
    keys: list[str]
    """Existing slugs and ids."""
    tools: dict[str, list[dict[str, Any]]]
    """The declared tools by the address of their server."""
    sessions: list[tuple[str, str]]
    """Cookies and CSRF token."""
    token: str


TEXTS = (
    *("", " ", "0", "-1", "1.5", "true", "null", "NaN", "Infinity", "-0", "1e400", "9" * 400, "1" * 16, "0x10", "１２"),
    *(
        "\x00",
        "a\x00b",
        "\x1b[31m",
        "\r\nX-Injected: 1",
        "\u202eabc",
        "\ud800",
        "\udfff",
        "\ufeff",
        "é" * 300,
        "🛶" * 50,
    ),
    *("a" * 300, "b" * 5_000, "c" * 70_000, "%", "%00", "%zz", "%ff%fe", "%25%32%35", "../../etc/passwd", "..%2f..%2f"),
    *("' OR 1=1 --", '";DROP TABLE x;--', "*", '"', "a AND", "NEAR(", "^", "(((((", "{}", "{{7*7}}", "{0.__class__}"),
    *("%s%n%d", "<script>alert(1)</script>", "javascript:alert(1)", "http://[::1", "http://a:99999999999/", "//x"),
    *("2026-02-30", "0001-01-01", "9999-12-31", "2026-11-22T25:00:00Z", "10000-01-01", "$" + "9" * 50, "$1e999", "€-1"),
    *(
        "a@b",
        "@",
        "mailto:x",
        "tel:+1",
        "ftp://x/",
        "https://x.example/" + "p" * 3_000,
        "xn--a",
        "ﬀ",
        "İ",
        "ß",
        "\u0130",
    ),
)
NUMBERS = (0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**300, 0.1, 1e308, -1e-320)
WHOLE = ("/companies", "/people", "/frameworks", "/stats", "/changes", "/exports", "/companies/{}", "/people/{}")
PARAMETERS = (
    *("q", "page", "pageSize", "sort", "order", "status", "type", "industry", "theme", "hasToken", "raising", "ids"),
    *("detail", "after", "limit", "cursor", "kind", "fields", "format", "x", "lei", "country", "since"),
)


def value(chance: random.Random, depth: int = 0) -> Any:
    """Return any JSON value, mostly an unwelcome one."""
    kind = chance.randrange(10)
    if kind < 5 or depth > 3:
        return chance.choice(TEXTS)
    if kind == 5:
        return chance.choice(NUMBERS)
    if kind == 6:
        return chance.choice((None, True, False))
    if kind == 7:
        return [value(chance, depth + 1) for _ in range(chance.randrange(5))]
    if kind == 8:
        names = ("id", "slug", "name", "add", "set", "remove", "__proto__", "", "$ref", chance.choice(TEXTS)[:100])
        return {chance.choice(names): value(chance, depth + 1) for _ in range(chance.randrange(4))}
    nested: Any = chance.choice(TEXTS)
    for _ in range(chance.choice((5, 50, 400))):
        nested = [nested] if chance.random() < 0.5 else {"a": nested}
    return nested


def text(chance: random.Random, known: Known) -> str:
    return chance.choice(known.keys) if chance.random() < 0.4 else chance.choice(TEXTS)


def filled(chance: random.Random, path: str, known: Known) -> str:
    """Fill the parts of a page's address, mostly with existing keys."""

    def part(_: re.Match[str]) -> str:
        return encoded(chance.choice(known.keys) if chance.random() < 0.85 else chance.choice(TEXTS))[:2_000]

    return re.sub(r"\{\}", part, path)


def encoded(part: str) -> str:
    """Return a part of a path; what no encoding can express goes through as bytes."""
    return quote(part.encode("utf-8", "surrogatepass"), safe="%") or "-"


def json_of(whole: Any) -> bytes:
    """Encode as JSON, lone surrogates and numbers beyond any range included."""
    try:
        return json.dumps(whole).encode()
    except (ValueError, RecursionError):
        return b"[" * 2_000


def headers(chance: random.Random) -> dict[str, str]:
    odd = {
        "Accept": ("*/*", "text/html", "application/json;q=x", "a/b" * 200, ""),
        "Accept-Encoding": ("br;q=0", "gzip;q=2", "zstd, *;q=0", "x" * 500),
        "Accept-Language": ("de", "xx-" * 100, "*", "\xff"),
        "If-None-Match": ("*", '"x"', 'W/"', ","),
        "If-Modified-Since": ("x", "Thu, 01 Jan 1970 00:00:00 GMT"),
        "Range": ("bytes=0-", "bytes=9999999999-", "bytes=-0", "x=1"),
        "Origin": ("null", "https://evil.example", "http://127.0.0.1:1"),
        "Content-Type": ("text/xml", "application/json; charset=utf-99", "multipart/form-data", "x"),
        "Cookie": ("sessionid=" + "a" * 4000, "csrftoken=\xff; =; ;;", "messages=x; sessionid=1"),
        "X-Request-Id": ("\xff", "a" * 500),
        "Authorization": ("Bearer", "Bearer x y", "Basic \xff", "Bearer mun_pat_" + "0" * 40),
        "MCP-Protocol-Version": ("1999-01-01", "2026-07-28", "\xff"),
        "traceparent": ("00-zz", "x"),
    }
    chosen = chance.sample(sorted(odd), chance.choice((0, 0, 1, 2)))
    return {name: chance.choice(odd[name]) for name in chosen}


def query(chance: random.Random, known: Known, names: list[str]) -> str:
    count = chance.choice((0, 1, 1, 2, 5))
    pairs = [(chance.choice(names), text(chance, known)) for _ in range(count)]
    joined = "&".join(f"{name}={quote_plus(part.encode('utf-8', 'surrogatepass'))}" for name, part in pairs)
    return f"?{joined[:12_000]}" if joined else ""


def rest(chance: random.Random, known: Known) -> Request:
    path = chance.choice(WHOLE).replace("{}", encoded(text(chance, known))[:2_000])
    prefix = chance.choice(("/api/v1", "/api/v1", "", "/exports", "/api"))
    method = chance.choice(("GET", "GET", "GET", "HEAD", "OPTIONS", "POST", "DELETE", "PATCH", "ODD"))
    body = json_of(value(chance)) if method in {"POST", "PATCH"} else b""
    return Request("rest", method, f"{prefix}{path}{query(chance, known, PARAMETERS)}", headers(chance), body)


def page(chance: random.Random, known: Known) -> Request:
    path = filled(chance, chance.choice(known.paths), known)
    cookies = {"Cookie": chance.choice(known.sessions)[0]} if chance.random() < 0.7 else {}
    names = [*PARAMETERS, "next", "step", "list", "add", "after", "client_id", "redirect_uri", "state"]
    return Request("pages", "GET", path + query(chance, known, names), {**headers(chance), **cookies})


def form(chance: random.Random, known: Known) -> Request:
    path = filled(chance, chance.choice(known.paths), known)
    cookies, csrf = chance.choice(known.sessions)
    chosen = chance.sample(known.fields, min(len(known.fields), chance.choice((0, 1, 3, 12))))
    fields = [(name, text(chance, known).encode("utf-8", "surrogatepass")) for name in chosen]
    fields.append(("csrfmiddlewaretoken", csrf.encode()))
    if chance.random() < 0.15:
        bound = "x" * chance.choice((1, 8, 90))
        parts = [
            f'--{bound}\r\nContent-Disposition: form-data; name="{name}"; filename="{chance.choice(TEXTS)[:80]}"'
            f"\r\nContent-Type: image/png\r\n\r\n".encode("utf-8", "replace")
            + content
            + b"\r\n"
            for name, content in fields[:-1]
        ]
        parts.append(
            f'--{bound}\r\nContent-Disposition: form-data; name="csrfmiddlewaretoken"\r\n\r\n{csrf}\r\n'.encode()
        )
        kind, body = f"multipart/form-data; boundary={bound}", b"".join(parts) + f"--{bound}--".encode()
    else:
        kind, body = "application/x-www-form-urlencoded", urlencode(fields).encode()
    return Request("forms", "POST", path, {"Cookie": cookies, "Content-Type": kind}, body)


def _like(chance: random.Random, schema: Any, known: Known) -> Any:  # noqa: PLR0911 - one for each type
    """Return a value that fits *schema* about half of the time."""
    if chance.random() < 0.3 or not isinstance(schema, dict):
        return value(chance)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "integer":
        return chance.choice((1, 2, 50, *NUMBERS))
    if kind == "boolean":
        return chance.random() < 0.5
    if kind == "array":
        return [_like(chance, schema.get("items", {}), known) for _ in range(chance.randrange(3))]
    if kind == "object":
        names = [*schema.get("properties", {}), *known.fields]
        return {name: value(chance) for name in chance.sample(names, min(len(names), chance.randrange(4)))}
    return text(chance, known)


def mcp(chance: random.Random, known: Known) -> Request:
    path = chance.choice(sorted(known.tools))
    tool = chance.choice(known.tools[path])
    properties = tool["inputSchema"].get("properties", {})
    arguments: Any = {name: _like(chance, part, known) for name, part in properties.items() if chance.random() < 0.7}
    if chance.random() < 0.1:
        arguments = value(chance)
    make: Callable[..., Any] = chance.choice((modern, legacy))
    methods = ("tools/list", "resources/read", "prompts/get", "completion/complete", "initialize", "ping", "x/y", "")
    if chance.random() < 0.8:
        lines, body = make("tools/call", {"name": tool["name"], "arguments": arguments})
    else:
        params = {"name": value(chance), "uri": value(chance), "ref": value(chance), "argument": value(chance)}
        lines, body = make(chance.choice(methods), params)
    if chance.random() < 0.1:
        body = chance.choice((body[:-3], b"[]", b"[" * 3_000, b"\xff\xfe", body + body, json_of(value(chance)), b""))
    told = {name: each for name, each in lines if name != "host" and re.fullmatch(r"[ -~]*", each)}
    if path.endswith("manage/mcp") and chance.random() < 0.95:
        told["authorization"] = f"Bearer {known.token}"
    return Request("mcp", chance.choice(("POST", "POST", "POST", "POST", "GET", "DELETE")), path, told, body)


def oauth(chance: random.Random, known: Known) -> Request:
    names = [
        *("client_id", "redirect_uri", "response_type", "scope", "state", "code_challenge", "code_challenge_method"),
        *("resource", "grant_type", "code", "code_verifier", "refresh_token", "client_secret", "token", "prompt"),
        *("token_type_hint", "login_hint"),
    ]
    path = chance.choice(("authorize", "token", "register", "revoke", "introspect"))
    fields = {name: text(chance, known).encode("utf-8", "surrogatepass") for name in chance.sample(names, 6)}
    if chance.random() < 0.5:
        fields |= {"grant_type": chance.choice((b"authorization_code", b"refresh_token", b"client_credentials"))}
    if path == "authorize":
        cookies = {"Cookie": chance.choice(known.sessions)[0]} if chance.random() < 0.5 else {}
        return Request("oauth", "GET", f"/oauth/authorize?{urlencode(fields)[:12_000]}", cookies)
    if path == "register":
        told = ("redirect_uris", "client_name", "grant_types", "scope", "logo_uri", "jwks", "contacts", "client_uri")
        body = json_of(
            {name: value(chance) for name in chance.sample(told, 4)} if chance.random() < 0.9 else value(chance)
        )
        return Request("oauth", "POST", "/oauth/register", {"Content-Type": "application/json"}, body)
    kind = {"Content-Type": "application/x-www-form-urlencoded", **headers(chance)}
    return Request("oauth", "POST", f"/oauth/{path}", kind, urlencode(fields).encode())


def upload(chance: random.Random, known: Known) -> Request:
    path = f"/{chance.choice(('uploads', 'downloads'))}/{encoded(text(chance, known))[:2_000]}"
    method = chance.choice(("PUT", "POST", "GET", "HEAD", "DELETE"))
    body = chance.choice(TEXTS).encode("utf-8", "surrogatepass") if method in {"PUT", "POST"} else b""
    return Request("uploads", method, path, headers(chance), body)


def webhook(chance: random.Random, known: Known) -> Request:
    kinds = ("checkout.session.completed", "checkout.session.expired", "charge.refunded", "charge.dispute.created", "x")
    concerned = {
        name: value(chance) for name in ("id", "metadata", "payment_status", "amount_total", "currency", "object")
    }
    event: Any = {
        "id": chance.choice(("evt_1", text(chance, known), 5)),
        "object": "event",
        "type": chance.choice(kinds),
        "data": {"object": concerned} if chance.random() < 0.8 else value(chance),
        "livemode": False,
        "created": 1,
    }
    body = json_of(event if chance.random() < 0.85 else value(chance))
    right = signed(body)
    given = chance.choice((right, right, right, right, "", "t=x,v1=y", "t=1,v1=" + "0" * 64, "\xff"))
    return Request("webhook", "POST", "/billing/stripe/webhook", {"Stripe-Signature": given}, body)


SURFACES = (rest, page, form, mcp, oauth, upload, webhook)


def requests(seed: int, count: int, known: Known) -> list[Request]:
    """Return *count* requests, the surfaces in turn."""
    chance = random.Random(seed)
    return [SURFACES[number % len(SURFACES)](chance, known) for number in range(count)]
