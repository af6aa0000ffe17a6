"""Conversations with a server: generated chunks of bytes, ordinary and hostile ones."""

import random

from services.mcp import initialize, legacy, modern

TARGETS = (
    b"/api/v1/companies",
    b"/api/v1/companies?page=2&pageSize=3",
    b"/api/v1/companies/company-1",
    b"/api/v1/companies/company-2",
    b"/api/v1/stats",
)
"""Targets that a server keeps."""
ODD_TARGETS = (
    b"/api/v1/companies/missing",
    b"/api/v1/companies?page=0",
    b"/api/v1/companies#x",
    b"/api/v1/companies?",
    b"http://registry.example/api/v1/companies",
    b"/api/v1/companies HTTP/1.1\r\nX: y",
    b"/api/v1/comp%61nies",
    b"//api/v1/companies",
    b"*",
    b"/",
    b"",
    b"/api/v1/companies\x80",
    b"/api/v1/companies\t",
    b" /api/v1/companies",
    b"/api/v1/companies HTTP/1.1\r\n",
)
ENDS = (b" HTTP/1.1\r\n",) * 8 + (
    b" HTTP/1.0\r\n",
    b"\r\n",
    b" HTTP/2.0\r\n",
    b" HTTP/1.1\n",
    b"  HTTP/1.1\r\n",
    b" http/1.1\r\n",
)
HEADS = (
    (b"Host: registry.example",),
    (b"Host: registry.example", b"User-Agent: wrk", b"Accept: */*", b"Accept-Encoding: zstd"),
    (b"host: registry.example", b"connection: keep-alive", b"accept-encoding: gzip, br", b"accept-language: de"),
    (b"Host: registry.example", b"If-None-Match: *"),
    (b"Host: registry.example", b'If-None-Match: "other"', b"If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT"),
)
ODD_LINES = (
    b"Content-Length: 0",
    b"Content-Length: 5",
    b"Content-Length: 5, 5",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip",
    b"Connection: close",
    b"Connection: keep-alive, close",
    b"Connection: upgrade",
    b"Proxy-Connection: close",
    b"Upgrade: h2c",
    b"Expect: 100-continue",
    b"Host: other.example",
    b" folded: line",
    b"Range: bytes=0-3",
    b"If-Modified-Since: Mon, 01 Jan 2035 00:00:00 GMT",
    b"If-None-Match:",
    b"Accept-Encoding: identity;q=0, br",
    b"Cookie: sessionid=secret",
    b"Authorization: Bearer secret",
    b"X-Request-Id: of-the-client",
    b"X-Forwarded-For: 198.51.100.7",
    b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    b"name without colon",
    b": value",
    b"Bad Name: x",
    b"X: \x00",
    b"X: \r",
    b"X: " + b"y" * 3000,
    b"",
)
CALLS = (
    modern("tools/list"),
    modern("tools/call", {"name": "get_company", "arguments": {"slug": "company-1"}}),
    modern("tools/call", {"name": "get_company", "arguments": {"slug": "missing"}}),
    modern("tools/call", {"name": "get_company", "arguments": {}}),
    initialize(),
    legacy("ping"),
)
"""Requests to a tool server, each with what it answers at once."""
BYTES = (b"\r", b"\n", b" ", b"\t", b"\x00", b":", b"\x80", b"%", b"?", b"A", b"/", b"\r\n", b"\r\n\r\n", b"0")


def asking(target: bytes, lines: tuple[bytes, ...], *, method: bytes = b"GET", end: bytes = ENDS[0]) -> bytes:
    return method + b" " + target + end + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def conversation(chance: random.Random) -> list[bytes]:
    """Return the chunks that one client sends: the same request until its head is known, then variants of it."""
    lines = chance.choice(HEADS)
    chunks = [asking(chance.choice(TARGETS), lines) for _ in range(3)]
    for _ in range(chance.randint(1, 5)):
        asked = _variant(chance, lines)
        for _ in range(chance.choice((0, 0, 0, 1, 2))):
            asked = _mutated(chance, asked)
        chunks.append(asked)
    chunks.append(asking(chance.choice(TARGETS), lines))
    kind = chance.randrange(6)
    if kind == 0:  # pipelined
        place = chance.randrange(len(chunks) - 1)
        chunks[place : place + 2] = [b"".join(chunks[place : place + 2])]
    elif kind == 1:  # in pieces
        place = chance.randrange(len(chunks))
        cut = chance.randrange(len(chunks[place]) + 1)
        chunks[place : place + 1] = [chunks[place][:cut], chunks[place][cut:]]
    elif kind == 2:  # cut at any place
        whole = b"".join(chunks)
        places = sorted(chance.randrange(len(whole)) for _ in range(chance.randint(1, 8)))
        chunks = [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]
    return [chunk for chunk in chunks if chunk]


def _variant(chance: random.Random, lines: tuple[bytes, ...]) -> bytes:
    found = list(lines)
    target, method, end = chance.choice(TARGETS), b"GET", ENDS[0]
    kind = chance.randrange(8)
    if kind == 0:
        target = chance.choice(ODD_TARGETS)
    elif kind == 1:
        end = chance.choice(ENDS)
    elif kind == 2:
        method = chance.choice((b"HEAD", b"POST", b"get", b"GET ", b" GET", b"\r\nGET", b"OPTIONS", b"PRI", b""))
    elif kind in {3, 4, 5}:
        found.insert(chance.randrange(len(found) + 1), chance.choice(ODD_LINES))
    elif kind == 6:
        found.append(chance.choice(found))
        chance.shuffle(found)
    body = chance.choice((b"", b"", b"", b"\r\n", b"hello", b"5\r\nhello\r\n0\r\n\r\n"))
    return asking(target, tuple(found), method=method, end=end) + body


def calling(chance: random.Random) -> list[bytes]:
    """Return the chunks of a client that calls tools between requests: calls in pieces, pipelined and damaged."""
    chunks = []
    for _ in range(chance.randint(2, 5)):
        headers, body = chance.choice(CALLS)
        lines = tuple(f"{name}: {value}".encode() for name, value in headers if name != "host")
        length = b"content-length: %d" % len(body)
        asked = asking(b"/api/mcp", (*HEADS[0], *lines, length), method=b"POST") + body
        for _ in range(chance.choice((0, 0, 0, 0, 1))):
            asked = _mutated(chance, asked)
        chunks += [asked, asking(chance.choice(TARGETS), chance.choice(HEADS))]
    if chance.randrange(2):
        whole = b"".join(chunks)
        places = sorted(chance.randrange(len(whole)) for _ in range(chance.randint(1, 8)))
        chunks = [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]
    return [chunk for chunk in chunks if chunk]


def _mutated(chance: random.Random, asked: bytes) -> bytes:
    place = chance.randrange(len(asked))
    kind = chance.randrange(4)
    if kind == 0:
        return asked[:place] + chance.choice(BYTES) + asked[place:]
    if kind == 1:
        return asked[:place] + chance.choice(BYTES) + asked[place + 1 :]
    if kind == 2:
        return asked[:place] + asked[place + chance.randint(1, 8) :]
    return asked[:place] + asked[chance.randrange(len(asked)) :]
