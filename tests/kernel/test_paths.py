"""Paths that mean the same have one form, and no path becomes another one."""

from urllib.parse import unquote

import pytest

from muniment.kernel.http.paths import canonical_path


@pytest.mark.parametrize(
    ("raw_path", "expected"),
    [
        (b"/", (b"/", "/")),
        (b"//", (b"/", "/")),
        (b"/api/v1/companies", (b"/api/v1/companies", "/api/v1/companies")),
        (b"//api///v1//", (b"/api/v1/", "/api/v1/")),
        (b"/a%2F/b", (b"/a%2F/b", "/a//b")),
        (b"/a%2F%2Fb//c", (b"/a%2F%2Fb/c", "/a//b/c")),
        (b"/cafe%CC%81", (b"/caf%C3%A9", "/café")),
        (b"/caf%C3%A9", (b"/caf%C3%A9", "/café")),
        (b"/cafe%CC%81/a%2Fb%3Fc", (b"/caf%C3%A9/a%2Fb%3Fc", "/café/a/b?c")),
        (b"/cafe%CC%81/%FF", (b"/caf%C3%A9/%FF", "/café/\ufffd")),
    ],
)
def test_a_path_has_one_form(raw_path, expected):
    assert canonical_path(raw_path, unquote(raw_path.decode())) == expected
