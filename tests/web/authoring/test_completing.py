"""What a form makes of an address that is typed without its scheme."""

import pytest

from muniment.kernel.texts import is_web_address
from muniment.schema.kinds import Email, Link, Profile, Text
from muniment.web.authoring.completing import completed


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("sunharvest.example", "https://sunharvest.example"),
        (" www.sunharvest.example/about?a=b#c ", "https://www.sunharvest.example/about?a=b#c"),
        ("//sunharvest.example", "https://sunharvest.example"),
        ("münchen.example", "https://münchen.example"),
        ("sunharvest.example:8443/x", "https://sunharvest.example:8443/x"),
        ("HTTP://Sunharvest.example", "http://Sunharvest.example"),
        ("https:/sunharvest.example", "https://sunharvest.example"),
        ("https://sunharvest.example", "https://sunharvest.example"),
    ],
)
def test_a_host_name_becomes_a_web_address(typed, meant):
    assert completed(typed, Link()) == meant
    assert is_web_address(meant)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "sunharvest",
        "javascript:alert(1)",
        "ftp://sunharvest.example",
        "name@sunharvest.example",
        "two words.example",
    ],
)
def test_a_text_that_is_no_address_is_left_for_the_validation(typed):
    assert completed(typed, Link()) == typed


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("mailto:office@sun.example?subject=Hi", "office@sun.example"),
        ("Sun Office <office@sun.example>", "office@sun.example"),
        (" office@sun.example ", "office@sun.example"),
        ("office", "office"),
    ],
)
def test_an_email_address_is_taken_out_of_what_surrounds_it(typed, meant):
    assert completed(typed, Email()) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("x.com/sunharvest", "https://x.com/sunharvest"),
        ("www.linkedin.com/company/sun", "https://www.linkedin.com/company/sun"),
        ("@sunharvest", "@sunharvest"),
        ("sun.harvest", "sun.harvest"),
        ("company/sun", "company/sun"),
        ("https://x.com/sun", "https://x.com/sun"),
    ],
)
def test_a_profile_is_an_address_or_a_name(typed, meant):
    assert completed(typed, Profile()) == meant


def test_other_texts_stay_as_they_are():
    assert completed(" sunharvest.example", Text()) == " sunharvest.example"
