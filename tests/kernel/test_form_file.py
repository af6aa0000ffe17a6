"""The file of a form, as the body of a request: whatever the pieces are, and whatever surrounds it."""

import asyncio

import pytest

from muniment.kernel.http.form_file import FormFile
from muniment.kernel.problems import BadRequest

BOUNDARY = b"----x7"
CONTENT = b"one\r\n--two\r\n------x\r\n" + bytes(range(256)) * 9
TYPE = b"multipart/form-data; boundary=" + BOUNDARY


def part(name, content, filename=None):
    about = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename is not None else "")
    return b"--" + BOUNDARY + f"\r\nContent-Disposition: {about}\r\n\r\n".encode() + content + b"\r\n"


END = b"--" + BOUNDARY + b"--\r\n"
FORM = part("note", b"not the file") + part("file", CONTENT, "minutes é.txt") + part("more", b"x", "b.txt") + END


def read(body, size=None, content_type=TYPE, *, hang_up=False):
    size = size or max(1, len(body))
    pieces = [body[start : start + size] for start in range(0, len(body), size)] or [b""]

    async def receive():
        if not pieces:
            assert hang_up
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces) or hang_up}

    async def run():
        form, found = FormFile(content_type, receive), b""
        if not await form.open():
            return None, None
        while True:
            message = await form.receive()
            if message["type"] == "http.disconnect":
                return form.name, None
            found += message["body"]
            if not message["more_body"]:
                return form.name, found

    return asyncio.run(run())


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000, None])
def test_the_first_file_is_passed_on_whatever_the_pieces_are(size):
    assert read(FORM, size) == ("minutes é.txt", CONTENT)


def test_an_empty_file_is_an_empty_body():
    assert read(part("file", b"", "a.txt") + END) == ("a.txt", b"")


@pytest.mark.parametrize("form", [part("note", b"x") + END, part("file", b"", "") + END, END, part("n", b"x" * 70_000)])
def test_a_form_without_a_file_is_refused(form):
    with pytest.raises(BadRequest, match="no file"):
        read(form)


@pytest.mark.parametrize("body", [FORM[:-300], b"no form at all", part("file", CONTENT, "a.txt"), FORM[:150]])
def test_what_is_no_whole_form_is_refused(body):
    for size in (None, 10):
        with pytest.raises(BadRequest):
            read(body, size)


@pytest.mark.parametrize("content_type", [b"multipart/form-data; boundary=" + b"x" * 300, b"multipart/form-data"])
def test_a_form_without_a_usable_boundary_is_refused(content_type):
    with pytest.raises(BadRequest):
        read(FORM, content_type=content_type)


def test_a_broken_connection_is_passed_on():
    assert read(part("note", b"x"), hang_up=True) == (None, None)
    assert read(part("file", CONTENT, "a.txt")[:200], hang_up=True) == ("a.txt", None)


def test_the_rest_of_a_form_is_read_to_its_end_or_its_limit():
    form, left = FormFile(TYPE, None), [b"x" * 100] * 10

    async def receive():
        return {"type": "http.request", "body": left.pop(), "more_body": bool(left)}

    form._receive_form = receive
    asyncio.run(form.discard(250))
    assert len(left) == 7
    asyncio.run(form.discard(10_000))
    asyncio.run(form.discard(10_000))
    assert left == []
