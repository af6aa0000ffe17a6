"""Logos and portraits: which pictures are accepted, and that only redrawn ones are kept."""

import hashlib
import io

import pytest
from PIL import Image

from make.pictures import bomb, moving, picture
from muniment.kernel.problems import BadRequest, Unavailable
from muniment.registry.company import pictures
from muniment.registry.models import Picture

pytestmark = pytest.mark.django_db
PATH = "/pictures/{}-512.webp"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<svg onload='alert(1)'/>",
        picture()[:60],
        picture("GIF"),
        moving("WEBP"),
        moving("PNG"),
        bomb(4_001),
        bomb(30_000),
        picture() + b"\0" * (2 << 20),
    ],
    ids=["empty", "SVG", "cut off", "GIF", "animated WebP", "animated PNG", "17 megapixels", "bomb", "over 2 MB"],
)
def test_a_picture_that_cannot_be_shown_safely_is_refused_and_not_kept(content):
    with pytest.raises(BadRequest):
        pictures.store_picture(content)
    assert not Picture.objects.exists()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_picture_is_kept_in_two_square_sizes(kind):
    path = pictures.store_picture(picture(kind))
    digest = Picture.objects.get().digest
    assert path == PATH.format(digest)
    for size in (144, 512):
        drawn = Image.open(io.BytesIO(pictures.picture_bytes(digest, size)))
        assert (drawn.format, drawn.size) == ("WEBP", (size, size))
    assert pictures.picture_bytes("0" * 32, 512) is None


def test_a_picture_that_costs_its_process_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(pictures, "WALL_S", 0.0)
    with pytest.raises(BadRequest, match="takes too much time or memory"):
        pictures.store_picture(picture())
    monkeypatch.undo()
    small, large = pictures.resize(picture())
    answer = len(b"ok\n") + 4 + len(small) + len(large)
    monkeypatch.setattr(pictures, "MAX_ANSWER_BYTES", answer)
    assert pictures.resize(picture()) == (small, large)
    monkeypatch.setattr(pictures, "MAX_ANSWER_BYTES", answer - 1)
    with pytest.raises(BadRequest, match="is not a readable image"):
        pictures.resize(picture())
    monkeypatch.undo()
    monkeypatch.setattr(pictures, "MEMORY_BYTES", 90 << 20)
    with pytest.raises(BadRequest, match="takes too much time or memory"):
        pictures.resize(picture(side=4_000))


def test_a_damaged_picture_is_not_shown(caplog):
    digest = pictures.store_picture(picture("PNG")).removeprefix("/pictures/")[:32]
    stored = Picture.objects.get(digest=digest)
    stored.large = bytes([*bytes(stored.large)[:-1], bytes(stored.large)[-1] ^ 1])
    stored.save()
    with pytest.raises(Unavailable):
        pictures.picture_bytes(digest, 512)
    assert "a picture is damaged" in caplog.text


def test_the_same_picture_is_kept_once_and_without_what_the_file_carried_beside_its_pixels():
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    plain, told = pictures.store_picture(picture()), pictures.store_picture(picture(exif=exif))
    assert (plain, Picture.objects.count()) == (told, 1)
    assert b"taken at home" not in bytes(Picture.objects.get().large)


def test_a_photo_is_turned_upright():
    exif = Image.Exif()
    exif[0x0112] = 6  # held sideways
    small, _ = pictures.resize(picture(side=300, exif=exif))
    upright = Image.open(io.BytesIO(small)).convert("RGBA")
    assert upright.getbbox(alpha_only=True) == (36, 0, 108, 144)


@pytest.mark.parametrize(
    ("address", "path"),
    [
        (PATH.format("a" * 32), PATH.format("a" * 32)),
        (f"https://registry.example{PATH.format('a' * 32)}", PATH.format("a" * 32)),
        ("https://elsewhere.example/logo.png", ""),
        (PATH.format("a" * 31), ""),
        ("", ""),
    ],
)
def test_only_addresses_of_our_own_form_have_a_path(address, path):
    assert pictures.stored_path(address) == path


@pytest.mark.django_db
def test_pictures_are_written_as_files_and_read_again(tmp_path):
    path = pictures.store_picture(picture())
    stored = Picture.objects.get()
    assert pictures.digests_of([path, "https://elsewhere.example/logo.png"]) == {stored.digest}
    assert pictures.write_files(tmp_path / "pictures", [stored.digest, "b" * 32]) == 1
    assert sorted(each.name for each in (tmp_path / "pictures").iterdir()) == [
        f"{stored.digest}-{side}.webp" for side in (144, 512)
    ]
    again = pictures.read_files(tmp_path / "pictures", stored.digest)
    assert (again.digest, again.small, again.large) == (stored.digest, bytes(stored.small), bytes(stored.large))


@pytest.mark.parametrize("size", [144, 512])
@pytest.mark.parametrize("content", [b"", b"<svg/>", picture(), picture("WEBP", 90), None])
def test_other_files_are_not_read_as_pictures(tmp_path, size, content):
    small, large = pictures.resize(picture())
    digest = hashlib.blake2b(large, digest_size=16).hexdigest()
    for side, good in ((144, small), (512, large)):
        given = content if side == size else good
        if given is not None:
            (tmp_path / f"{digest}-{side}.webp").write_bytes(given)
    assert pictures.read_files(tmp_path, digest) is None
