"""What the process that draws pictures answers is used only in its declared form."""

import json

import pytest

from make.pictures import picture
from muniment import child_process
from muniment.kernel.problems import BadRequest
from muniment.registry.company import pictures, redrawing
from muniment.registry.company.redrawing import HINT, redraw

SMALL, LARGE = redraw(picture(), ("PNG",), is_logo=False)


def drawn(small, large):
    return redrawing.OK + redrawing.LENGTH.pack(len(small)) + small + large


def refusal(message="It is refused.", hint=HINT, megapixels=0.0, **more):
    return json.dumps({"message": message, "hint": hint, "megapixels": megapixels, **more}).encode()


@pytest.fixture
def answering(monkeypatch):
    def answer(said):
        monkeypatch.setattr(child_process, "run", lambda *_, **__: child_process.Ended(0, said))
        return pictures.resize(b"a picture")

    return answer


def test_both_sizes_of_a_picture_are_accepted(answering):
    assert answering(drawn(SMALL, LARGE)) == (SMALL, LARGE)


@pytest.mark.parametrize(
    "said",
    [
        redrawing.OK,
        redrawing.OK + b"\0\0",
        drawn(b"", LARGE),
        drawn(SMALL, b""),
        drawn(SMALL, LARGE + b"<html>"),
        drawn(SMALL[:-1], LARGE),
        drawn(b"<svg/>", LARGE),
        drawn(SMALL, picture()),
        redrawing.OK + redrawing.LENGTH.pack(0xFFFFFFFF) + SMALL + LARGE,
        b"nothing that is known",
        b"\xff",
        refusal(message=""),
        refusal(message="x" * 301),
        refusal(hint="x" * 301),
        refusal(megapixels=-1.0),
        refusal(megapixels=1e13),
        refusal(megapixels="{0}"),
    ],
    ids=lambda said: repr(bytes(said[:20])),
)
def test_another_answer_is_not_used(answering, said):
    with pytest.raises(BadRequest) as refused:
        answering(said)
    assert (refused.value.message, refused.value.hint) == ("The file is not a readable image.", HINT)


def test_a_refusal_is_shown_as_it_is(answering):
    for said, message in (
        (refusal("{x:99999999d} {self.__class__}", values={"x": 1}), "{x:99999999d} {self.__class__}"),
        (refusal(megapixels=16.4), "The image has 16 megapixels."),
    ):
        with pytest.raises(BadRequest) as refused:
            answering(said)
        assert str(refused.value.message) == message
