"""Which files become logos, and that each is drawn in our sizes on a ground that it stands out from."""

import io
import socket
import ssl

import pytest
from PIL import Image, ImageDraw

from make.pictures import bitmap, bomb, icon, moving, picture
from muniment.registry.company.redrawing import NotAPicture, redraw
from muniment.registry.logos import fetching
from muniment.registry.logos.fetching import LogoFault, draw, fetch_logo

ADDRESS = "http://logos.example/logo"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><rect width="10" height="10" fill="#8a2b2b"/></svg>'


def disc(colour, side=100, inset=20):
    """A disc on nothing."""
    drawn = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    ImageDraw.Draw(drawn).ellipse((inset, inset, side - inset, side - inset), fill=colour)
    out = io.BytesIO()
    drawn.save(out, "PNG")
    return out.getvalue()


def opened(content):
    return Image.open(io.BytesIO(content)).convert("RGBA")


@pytest.mark.parametrize(
    "content",
    [
        picture(),
        picture("JPEG"),
        picture("WEBP"),
        picture("GIF"),
        picture("ICO", side=64),
        picture("ICO", side=64, bitmap_format="bmp"),
        icon(picture(side=400)),
        moving("GIF"),
        moving(),
        SVG,
    ],
    ids=[
        "PNG",
        "JPEG",
        "WebP",
        "GIF",
        "icon",
        "icon with a bitmap",
        "icon with a large picture",
        "moving GIF",
        "moving WebP",
        "SVG",
    ],
)
def test_a_logo_is_drawn_in_both_sizes(site, content):
    site.files["/logo"] = content
    drawn = fetch_logo(ADDRESS)
    assert [opened(each).size for each in drawn] == [(144, 144), (512, 512)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", "not a readable image", id="empty"),
        pytest.param(b"<!doctype html><title>Sign in</title>", "not a readable image", id="page"),
        pytest.param(b"<!doctype html><p><svg></svg>", "not well-formed", id="page with an SVG"),
        pytest.param(picture()[:60], "not a readable image", id="cut off"),
        pytest.param(picture("TIFF"), "not a readable image", id="TIFF"),
        pytest.param(bomb(4_001), "megapixels", id="17 megapixels"),
        pytest.param(bomb(30_000), "megapixels", id="bomb"),
        pytest.param(icon(bomb(5_000)), "25 megapixels", id="icon around a PNG"),
        pytest.param(icon(bitmap(5_000)), "far more than 16 megapixels", id="icon around a bitmap"),
        pytest.param(icon(b"neither"), "not a readable image", id="icon around nothing"),
        pytest.param(picture(side=20), "smaller than 16", id="counter of visits"),
        pytest.param(disc((0, 0, 0, 0)), "is empty", id="nothing to be seen"),
        pytest.param(SVG.replace(b"<rect", b"<!-- " + b"x" * 200_000 + b" --><rect"), "larger than 200 KB", id="SVG"),
    ],
)
def test_what_is_no_logo_is_refused_for_long(content, reason):
    with pytest.raises(LogoFault, match=reason) as refused:
        draw(content)
    assert refused.value.is_lasting


def test_the_picture_in_an_icon_is_not_decoded_before_its_size_is_known(monkeypatch):
    decoded = []
    monkeypatch.setattr(Image.core, "new", lambda mode, size: decoded.append((mode, size)))
    with pytest.raises(NotAPicture, match="megapixels"):
        redraw(icon(bomb(9_000)), fetching.FORMATS, is_logo=True)
    assert not decoded


def test_a_large_file_is_not_read_to_its_end(site):
    site.files["/logo"] = picture() + b"\0" * (3 << 20)
    with pytest.raises(LogoFault, match="too large") as refused:
        fetch_logo(ADDRESS)
    assert refused.value.is_lasting


@pytest.mark.parametrize(("status", "is_lasting"), [(404, True), (410, True), (403, True), (429, False), (503, False)])
def test_a_site_that_does_not_have_it_is_asked_again_soon_only_if_that_may_change(site, status, is_lasting):
    site.files["/logo"] = (status, {})
    with pytest.raises(LogoFault, match=f"answered {status}") as refused:
        fetch_logo(ADDRESS)
    assert refused.value.is_lasting is is_lasting


def test_a_slow_site_is_given_up(site, monkeypatch):
    monkeypatch.setattr(fetching, "DEADLINE_S", 0.2)

    def drip(request):
        request.connection.settimeout(5)
        request.connection.recv(1)  # until the other side gives up

    site.files["/logo"] = drip
    with pytest.raises(LogoFault, match="too long") as refused:
        fetch_logo(ADDRESS)
    assert not refused.value.is_lasting


def test_a_site_with_an_invalid_certificate_is_not_asked_again_soon(monkeypatch):
    def refuse(*_arguments, **_options):
        raise ssl.SSLCertVerificationError("certificate has expired")

    monkeypatch.setattr(fetching, "follow", refuse)
    with pytest.raises(LogoFault, match="certificate is invalid") as refused:
        fetch_logo("https://logos.example/logo.png")
    assert refused.value.is_lasting


def test_a_site_that_is_away_is_asked_again(monkeypatch):
    def unreachable(*_):
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(fetching, "connection", {"resolve": unreachable})
    with pytest.raises(LogoFault, match="did not answer") as refused:
        fetch_logo("https://logos.example/logo.png")
    assert not refused.value.is_lasting


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1/logo.png", "http://[::1]/x", "http://169.254.169.254/x", "http://10.0.0.1/x", "file:///x.png"],
)
def test_private_addresses_are_refused_without_a_connection(address):
    with pytest.raises(LogoFault) as refused:
        fetch_logo(address)
    assert refused.value.is_lasting


def test_a_redirect_to_a_private_address_is_refused(site):
    site.files["/logo"] = (302, {"Location": "http://private.example/logo"})
    with pytest.raises(LogoFault, match="not public"):
        fetch_logo(ADDRESS)
    assert site.asked == ["logos.example/logo"]


@pytest.mark.parametrize(
    ("colour", "ground"),
    [((20, 30, 90, 255), (255, 255, 255)), ((255, 255, 255, 255), (30, 32, 36)), ((250, 240, 180, 255), (30, 32, 36))],
    ids=["dark", "white", "pale"],
)
def test_a_logo_without_a_ground_gets_one_that_it_stands_out_from(colour, ground):
    large = opened(draw(disc(colour)).large)
    corner, middle = large.getpixel((3, 3)), large.getpixel((256, 256))
    assert all(abs(a - b) < 12 for a, b in zip(corner, (*ground, 255), strict=True))
    assert all(abs(a - b) < 12 for a, b in zip(middle, colour, strict=True))


def test_a_small_logo_fills_its_tile():
    large = opened(draw(picture("PNG", side=64)).large)
    assert large.getbbox(alpha_only=True) == (0, 128, 512, 384)
