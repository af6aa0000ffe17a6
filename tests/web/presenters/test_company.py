"""The facts and links of a company's page."""

import pytest

from muniment.web.presenters.company import links_of


@pytest.mark.parametrize(
    ("number", "address"),
    [
        ("+49 30 123456", "tel:+4930123456"),
        ("+49\u00a0(30) 12-34", "tel:+49(30)12-34"),
        ("+4930123456", "tel:+4930123456"),
    ],
)
def test_a_telephone_number_with_spaces_is_a_link_and_shown_as_written(number, address):
    [link] = links_of({"socials": {"phone_number": number}})
    assert (link["address"], link["value"]) == (address, number)


def test_a_telephone_number_cannot_leave_its_link():
    for number in ('+49 30"onclick="x', "+49 <script>", "javascript:alert(1)"):
        assert links_of({"socials": {"phone_number": number}}) == []
