"""Which language a visitor reads, by cookie and headers; other than usual values choose nothing."""

import pytest

from muniment.languages.offered import chosen, preferred

KNOWN = ("en", "de", "pt-br")


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        (b"de", "de"),
        (b"de-AT,de;q=0.9,en;q=0.8", "de"),
        (b"DE-at", "de"),
        (b"pt-BR", "pt-br"),
        (b"pt", "en"),
        (b"fr,de;q=0.3", "de"),
        (b"fr;q=1,en;q=0.2,de;q=0.8", "de"),
        (b"en;q=0,de;q=0.001", "de"),
        (b"de;q=0", "en"),
        (b"*", "en"),
        (b"*;q=0.5,de;q=0.4", "en"),
        (b"tlh,xx-klingon", "en"),
        (b"", "en"),
    ],
)
def test_the_browsers_preference_is_followed_down_to_the_language_without_its_region(accepted, expected):
    assert chosen(accepted, b"", KNOWN) == expected


@pytest.mark.parametrize(
    "accepted",
    [
        b";;;",
        b"de;q=",
        b"de;q=nan",
        b"de;q=-1",
        b"de;q=1e9",
        b"de;q=inf",
        b",,,,",
        b"\xff\xfe",
        b"de;q=0.1.2",
        b"q=1",
        b"../../etc/passwd",
    ],
)
def test_a_malformed_preference_chooses_the_default(accepted):
    assert chosen(accepted, b"", KNOWN) == "en"


def test_a_very_long_preference_is_read_in_bounded_time_and_not_kept():
    assert preferred(b"xx," * 100_000 + b"de", KNOWN) == "en"
    assert chosen(b"de," + b"x" * 9_000, b"", KNOWN) == "de"


@pytest.mark.parametrize(
    ("cookies", "expected"),
    [
        (b"language=de", "de"),
        (b"sessionid=1; language=de; signed_in=1", "de"),
        (b'language="de"', "de"),
        (b"language=DE", "de"),
        (b"language=pt-br", "pt-br"),
        (b"language=fr", "pt-br"),
        (b"language=", "pt-br"),
        (b"language=../../x", "pt-br"),
        (b"language=de\x00", "pt-br"),
        (b"xlanguage=de", "pt-br"),
        (b"language=" + b"d" * 5_000, "pt-br"),
    ],
)
def test_an_explicit_choice_comes_first_if_it_is_offered(cookies, expected):
    assert chosen(b"pt-BR", cookies, KNOWN) == expected


def test_without_a_choice_the_first_language_is_the_default():
    assert chosen(b"", b"", ("de", "en")) == "de"
    assert chosen(b"fr", b"", ("de", "en")) == "de"
