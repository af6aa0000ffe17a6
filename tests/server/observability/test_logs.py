"""Log lines: what they carry, and that no secret stands in them however deep it lies."""

import io
import json
import logging
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment import masking
from muniment.config import Config
from muniment.masking import masked
from muniment.server.app.app import App
from muniment.server.observability.logs import MAX_CHARACTERS, Json, TextFormatter, request_id, set_up

TOKEN = "mun_pat_" + "4" * 36


@pytest.fixture(params=[Json, TextFormatter], ids=["json", "text"])
def written(request):
    """Return a function that logs with the given extras and returns the line."""

    def write(message: str, *arguments: object, **extra: object) -> str:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(request.param())
        record = logging.getLogger("suite").makeRecord(
            "suite", logging.INFO, __file__, 1, message, arguments, None, extra=extra
        )
        handler.handle(record)
        return stream.getvalue()

    return write


def test_a_text_in_a_line_has_a_length(written):
    for line in (written("Not Found: %s", "/x" * 8_000), written("Not Found", address="/x" * 8_000)):
        assert len(line) <= MAX_CHARACTERS + 300
    assert "x" * MAX_CHARACTERS in written("Found", address="x" * MAX_CHARACTERS)


@pytest.mark.requirement("ops.logs")
@pytest.mark.parametrize(
    "extra",
    [
        {"headers": {"authorization": f"Bearer {TOKEN}"}},
        {"headers": {"Cookie": "sessionid=harbour"}},
        {"sent": [{"deep": {"deeper": ("x", [f"?token={TOKEN}"])}}]},
        {"given": {"password": "harbour"}},
        {"given": {"clientSecret": "harbour"}},
        {"given": {"user": {"refresh_token": "harbour"}}},
        {"api_key": "harbour"},
        {"database": {"url": "postgresql://muniment:harbour@db/muniment"}},
        {"raw": f"Authorization: Bearer {TOKEN}".encode()},
        {"links": {f"/uploads/{'h' * 43}": 1}},
        {"held": {f"mun_rt_{'harbour' * 4}"}},
        {"said": "Invalid API Key provided: sk_live_51harbour, rk_test_harbour; whsec_harbour"},
    ],
    ids=str,
)
def test_no_log_line_contains_a_secret_at_any_depth(written, extra):
    line = written("looked at", **extra)
    assert TOKEN not in line
    assert "harbour" not in line
    assert "h" * 43 not in line
    assert "***" in line


def test_a_text_that_is_not_a_secret_is_logged_unchanged(written):
    line = written("asked %s", "twice", counts={"companies": 3, "names": ["Quillmere", None, True]}, tokens_used=12)
    for shown in ("asked twice", "companies", "3", "Quillmere", "12"):
        assert shown in line


@pytest.mark.requirement("ops.logs")
def test_a_line_for_machines_is_one_object_with_its_request():
    token = request_id.set("abc-1")
    try:
        record = logging.makeLogRecord({"msg": "seen", "levelname": "INFO", "name": "suite", "odd": object()})
        line = json.loads(Json().format(record))
    finally:
        request_id.reset(token)
    assert (line["message"], line["requestId"], line["level"]) == ("seen", "abc-1", "info")
    assert line["odd"].startswith("<object")


def test_the_line_of_a_request_has_method_path_and_status_as_fields(tmp_path):
    app = App(Config({}, data=tmp_path, rate_limit=0))
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("muniment.server")
    for formatter in (Json(), TextFormatter()):
        handler.setFormatter(formatter)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            app.write_line("GET", b"/uploads/harbour?x=1", 404, 0.0021, client="192.0.2.1", request_id=b"abc-1")
        finally:
            logger.removeHandler(handler)
    machine, person = stream.getvalue().splitlines()
    line = json.loads(machine)
    assert (line["method"], line["path"], line["status"]) == ("GET", "/uploads/***?x=1", 404)
    assert (line["milliseconds"], line["client"], line["requestId"]) == (2.1, "192.0.2.1", "abc-1")
    assert person.count("/uploads/***") == 1, "the message says it already"
    assert "milliseconds=2.1" in person


@pytest.fixture
def _set_up_again():
    loggers = [logging.getLogger(), *map(logging.getLogger, list(logging.root.manager.loggerDict))]
    levels, handlers = [logger.level for logger in loggers], logging.root.handlers[:]
    yield
    logging.captureWarnings(capture=False)
    logging.root.handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.mark.usefixtures("_set_up_again")
def test_the_level_of_the_registrys_own_lines_is_set_and_libraries_stay_at_theirs():
    own, library = logging.getLogger("muniment"), logging.getLogger("django")
    for level, is_debug, is_info in (("debug", True, True), ("info", False, True), ("warning", False, False)):
        set_up("json", level)
        assert (own.isEnabledFor(logging.DEBUG), own.isEnabledFor(logging.INFO)) == (is_debug, is_info)
        assert (library.isEnabledFor(logging.DEBUG), library.isEnabledFor(logging.INFO)) == (False, True)


def test_a_structure_that_holds_itself_ends(written):
    ring: dict[str, object] = {"password": "harbour"}
    ring["again"] = ring
    assert "harbour" not in written("round", ring=ring)


def test_an_error_is_logged_without_the_secrets_of_its_message():
    address = f"https://suite:harbour@store.example?access_token={TOKEN}"
    try:
        raise ValueError(f"refused {address}")  # noqa: TRY301 - to be caught
    except ValueError:
        record = logging.getLogger("suite").makeRecord("suite", 40, __file__, 1, "failed", (), exc_info=True)
        import sys

        record.exc_info = sys.exc_info()
    trace = json.loads(Json().format(record))["trace"]
    assert "ValueError" in trace
    assert "harbour" not in trace
    assert TOKEN not in trace
    assert masked(trace) == trace


LINKS = ["uploads/", "downloads/", "accounts/confirm-email/", "accounts/password/reset/key/1-", "manage/invitations/"]
LINKS += [
    "reports/shared/",
    "uploads//",
    "uploads/./",
    "?next=/manage/invitations/",
    "x?token=",
    "x?a=1&code=",
    "mun_pat_",
]
SECRETS = st.text("abcdefghijkLMNOPQ0123456789-_", min_size=16, max_size=43)


def fully_decoded(text):
    for _ in range(20):
        text = unquote(text)
    return text


@st.composite
def disguised(draw, text):
    """Percent-encode any characters of *text*, then any of the result, up to five times."""
    for _ in range(draw(st.integers(0, 5))):
        chosen = draw(st.sets(st.integers(0, len(text) - 1), max_size=12))
        text = "".join(f"%{ord(each):02x}" if place in chosen else each for place, each in enumerate(text))
    return text


@pytest.mark.requirement("ops.logs")
@given(st.data(), st.sampled_from(LINKS), SECRETS)
def test_a_link_with_a_secret_is_masked_however_it_is_encoded(data, link, secret):
    address = data.draw(disguised(f"/{link}{secret}"))
    for text in (f"GET {address} 404", f"see https://registry.example{address}, then sign in", address):
        assert secret not in fully_decoded(masked(text)), text


@pytest.mark.requirement("ops.logs")
@given(st.data(), st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40))
def test_a_password_in_an_address_is_masked_whatever_it_contains(data, password):
    password = f"kept{password}secret"
    place = data.draw(st.sampled_from(["postgresql://muniment:", "s3://KEY:", "smtp://me@mail.example:", "redis://:"]))
    text = masked(f"cannot reach {place}{password}@store.example:5432/registry?x=1, retrying")
    assert password not in text
    assert "kept" not in text
    assert "store.example:5432" in text
    assert "retrying" in text
    assert password not in masked(
        f"FATAL: host=store user=muniment password={password}".replace("&", "").replace("'", "")
    )


@pytest.mark.parametrize(
    "text",
    [
        "100% of 50% done",
        "GET /companies?q=a%20b 200",
        "http://127.0.0.1:8000/companies/quillmere answered",
        "exit code=1, state=ready",
        "a replica is 3 s behind: /var/lib/muniment",
    ],
)
def test_a_text_without_a_secret_stays_as_it_is(text):
    assert masked(text) == text


def test_masking_takes_time_in_proportion_to_the_text(monkeypatch):
    looked_at = []
    once = masking._masked_once
    monkeypatch.setattr(masking, "_masked_once", lambda word: looked_at.append(len(word)) or once(word))
    word = "%" + "25" * 5000 + "41" + "://a:" * 1000
    assert masked(word) == "***", "encoded more often than any honest address"
    assert sum(looked_at) < 12 * len(word)
