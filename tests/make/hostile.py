"""Malicious HTTP requests."""


def _headed(*lines: bytes, start: bytes = b"GET /api/v1/stats HTTP/1.1", host: bytes = b"Host: x") -> bytes:
    return b"\r\n".join((start, host, *lines)) + b"\r\n\r\n"


SMUGGLING: tuple[bytes, ...] = tuple(
    _headed(*lines, start=b"POST /api/v1/stats HTTP/1.1") + body
    for lines, body in (
        ((b"Content-Length: 5", b"Transfer-Encoding: chunked"), b"0\r\n\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n"),
        ((b"Transfer-Encoding: chunked", b"Content-Length: 5"), b"0\r\n\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n"),
        ((b"Content-Length: 5", b"Content-Length: 6"), b"123456"),
        ((b"Content-Length: 5, 6",), b"123456"),
        ((b"Content-Length: +5",), b"12345"),
        ((b"Content-Length: -1",), b""),
        ((b"Content-Length: 0x5",), b"12345"),
        ((b"Content-Length: 99999999999999999999999",), b""),
        ((b"Content-Length : 5",), b"12345"),
        ((b"Transfer-Encoding : chunked",), b"0\r\n\r\n"),
        ((b"Transfer-Encoding: chunked, identity",), b"0\r\n\r\n"),
        ((b"Transfer-Encoding: xchunked",), b"0\r\n\r\n"),
        ((b"Transfer-Encoding: chunked",), b"z\r\n\r\n"),
        ((b"Transfer-Encoding: chunked",), b"-1\r\n\r\n"),
        ((b"Transfer-Encoding: chunked",), b"fffffffffffffffff\r\n\r\n"),
        ((b"Transfer-Encoding: chunked",), b"3\r\nabcde\r\n0\r\n\r\n"),
    )
)
"""Requests that two parsers could split differently."""

SHAPES: tuple[bytes, ...] = (
    *SMUGGLING,
    _headed(host=b"X: y"),
    _headed(b"Host: y"),
    _headed(b" folded: header"),
    _headed(b"Bad Name: 1"),
    _headed(b"Bad\x00Name: 1"),
    _headed(b"Name: a\x00b"),
    _headed(b"Name: a\rb"),
    _headed(b": nameless"),
    _headed(b"no colon"),
    _headed(b"X: " + b"a" * 200_000),
    _headed(*(b"X-%d: y" % number for number in range(5_000))),
    _headed(b"a" * 200_000 + b": y"),
    _headed(start=b"GET /api/v1/stats?" + b"a=1&" * 10_000 + b" HTTP/1.1"),
    _headed(start=b"GET /" + b"a" * 100_000 + b" HTTP/1.1"),
    _headed(start=b"GET /api/v1/companies/\xff\xfe HTTP/1.1"),
    _headed(start=b"GET /api/v1/\x00 HTTP/1.1"),
    _headed(start=b"GET /api/v1/stats HTTP/9.9"),
    _headed(start=b"GET /api/v1/stats HTTP/2.0"),
    _headed(start=b"GET /api/v1/stats"),
    _headed(start=b"GET http:// HTTP/1.1"),
    _headed(start=b"CONNECT localhost:80 HTTP/1.1"),
    _headed(start=b"NONSENSE /api/v1/stats HTTP/1.1"),
    _headed(start=b"get /api/v1/stats HTTP/1.1"),
    b"NONSENSE\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x00" * 1_000,
    b"\xff" * 1_000,
    b"a" * 300_000,
)
"""Each is refused with 4xx."""

ODD: tuple[bytes, ...] = tuple(
    _headed(start=b"GET " + target + b" HTTP/1.1")
    for target in (
        b"/api/v1/companies/%00",
        b"/api/v1/companies/%ff%fe",
        b"/api/v1/companies/%ed%a0%80",
        b"/api/v1/companies/%",
        b"/api/v1/companies/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        b"/api/v1/companies/" + b"a" * 5_000,
        b"/api/v1/companies?page=" + b"9" * 5_000,
        b"/api/v1/companies?page=1&page=2",
        b"/api/v1/companies?q=%ff",
        b"/api/v1/companies?q=%00",
        b"/api/v1/companies?q=" + b"%22" * 500,
        b"/api/v1/companies?cursor=%ff",
        b"/api/v1/companies?" + b"a=1&" * 3_000,
        b"/api/v1/companies?ids=" + b"a," * 3_000,
        b"/companies/%00",
        b"/companies/%ff",
        b"/people/%ed%a0%80",
        b"/static/../../../etc/passwd",
        b"/static/%2e%2e/%2e%2e/etc/passwd",
        b"/exports/..%2f..%2fmuniment.sqlite3",
        b"/" + b"../" * 100,
        b"//evil.example/x",
        b"/api/mcp",
        b"*",
    )
)
"""Well-formed but malicious: never a 5xx."""

HEALTH_CHECKS = (
    *(f"/{name}{end}" for name in ("metrics", "readyz", "healthz") for end in ("/", "//", "%2f", "%2F", "/.", "%00")),
    *("/%6detrics", "/m%65trics", "/%72eadyz", "//metrics", "/./metrics", "/x/../metrics", "/metrics;x", "/METRICS"),
    *("/%2e/readyz", "/metrics/x", "/readyz%3fwrites", "/%2fmetrics"),
)
"""Other forms of the paths of health checks."""
