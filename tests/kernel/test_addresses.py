"""Which addresses count together."""

import pytest

from muniment.kernel.http.addresses import rate_key, site_key


@pytest.mark.parametrize(
    ("address", "client", "site"),
    [
        ("192.0.2.7", "192.0.2.7", None),
        ("::ffff:192.0.2.7", "192.0.2.7", None),
        ("2001:db8:1::7", "2001:db8:1::/64", "2001:db8:1::/48"),
        ("2001:db8:1:ffff:ffff:ffff:ffff:ffff", "2001:db8:1:ffff::/64", "2001:db8:1::/48"),
        ("2001:db8:2::", "2001:db8:2::/64", "2001:db8:2::/48"),
        ("fe80::1%eth0", "fe80::/64", "fe80::/48"),
        ("unix", "unix", None),
        ("", "", None),
    ],
)
def test_an_ipv6_client_is_its_network_of_64_bits_and_its_site_that_of_48(address, client, site):
    assert (rate_key(address), site_key(address)) == (client, site)
    assert site_key(client) == site
