"""Negotiated encodings are remembered, but not for values that only an attacker sends."""

import pytest

from muniment.kernel.http import content_negotiation
from muniment.kernel.http.content_negotiation import negotiated
from muniment.mcp.protocol import http
from muniment.mcp.protocol.http import NotAcceptable, OriginPolicy, check_types


@pytest.mark.parametrize(
    ("accepted", "chosen"), [(b"br", b"br"), (b"br;q=0", b""), (b"gzip, br;q=0.5", b"gzip"), (b"*", b"zstd")]
)
def test_the_preferred_encoding_is_chosen_also_from_a_long_value(accepted, chosen):
    assert negotiated(accepted) == chosen
    assert negotiated(accepted + b", x-unknown" * 1000) == chosen


def test_long_header_values_are_not_kept_in_memory():
    kept = content_negotiation._remembered.cache_info().currsize, http._remembered.cache_info().currsize
    policy = OriginPolicy("http://registry.example")
    for number in range(50):
        long = b", x%d" % number * 100
        negotiated(b"br" + long)
        check_types({b"content-type": b"application/json", b"accept": b"application/json" + long})
        with pytest.raises(NotAcceptable):
            check_types({b"content-type": b"application/json", b"accept": b"text/html" + long})
        policy.admit(b"registry.example", b"https://%d.example" % number * 50)
    found = content_negotiation._remembered.cache_info().currsize, http._remembered.cache_info().currsize
    assert found == kept
    assert policy._admitted == set()
