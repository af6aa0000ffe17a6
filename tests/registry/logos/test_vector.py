"""An SVG is drawn only if it has shapes alone, by a process that can neither take long nor read files."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from muniment import child_process
from muniment.registry.logos import vector
from muniment.registry.logos.vector import NotDrawable, check, draw, is_vector

OPEN = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 10 10">'
SHAPE = '<circle cx="5" cy="5" r="4"/>'


def svg(inside, before=""):
    return f"{before}{OPEN}{inside}</svg>".encode()


@pytest.mark.parametrize(
    "inside",
    [
        SHAPE,
        f"<defs><g id='a'>{SHAPE}</g></defs><use href='#a'/><use xlink:href='#a'/>",
        f"<style>circle {{ fill: #8a2b2b }}</style>{SHAPE}",
        f"<metadata><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/></metadata>{SHAPE}",
        "<defs><linearGradient id='g'><stop offset='0'/></linearGradient></defs><path d='M0 0h9v9z' fill='url(#g)'/>",
    ],
)
def test_shapes_are_drawn(inside):
    assert is_vector(svg(inside))
    assert draw(svg(inside)).startswith(b"\x89PNG")


@pytest.mark.parametrize("before", ["<?xml version='1.0'?>", "<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'x.dtd'>"])
def test_a_prologue_is_allowed(before):
    assert draw(svg(SHAPE, before)).startswith(b"\x89PNG")


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (svg('<image href="/etc/hostname"/>'), "element image"),
        (svg('<image xlink:href="data:image/png;base64,AAAA"/>'), "element image"),
        (svg("<script>1</script>"), "element script"),
        (svg("<foreignObject/>"), "element foreignObject"),
        (svg("<filter id='f'><feGaussianBlur stdDeviation='9999'/></filter>"), "element filter"),
        (svg("<text>Harbour</text>"), "element text"),
        (svg('<use href="../other.svg#a"/>'), "another file"),
        (svg('<use xlink:href="https://other.example/a.svg#a"/>'), "another file"),
        (svg("&a;", '<!DOCTYPE svg [<!ENTITY a "aaaa">]>'), "entities"),
        (svg("&a;", '<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/hostname">]>'), "entities"),
        (svg("<g>" * 50 + "</g>" * 50), "too many elements"),
        (svg("<g/>" * 6_000), "too many elements"),
        (svg("<g>"), "not well-formed"),
        (b'<svg viewBox="0 0 1 1"/>', "not an SVG"),
        (b'<html xmlns="http://www.w3.org/1999/xhtml"><svg/></html>', "not an SVG"),
    ],
)
def test_what_shapes_do_not_need_is_refused_with_its_reason(content, reason):
    with pytest.raises(NotDrawable, match=reason):
        check(content)
    with pytest.raises(NotDrawable, match=reason):
        draw(content)


def test_references_that_multiply_are_refused():
    levels = "".join(f"<g id='l{n}'>" + f"<use href='#l{n - 1}'/>" * 50 + "</g>" for n in range(1, 12))
    with pytest.raises(NotDrawable):
        draw(svg(f"<defs><g id='l0'>{SHAPE}</g>{levels}</defs><use href='#l11'/>"))


def test_a_picture_of_millions_of_rows_needs_too_much_memory():
    with pytest.raises(NotDrawable):
        draw(svg(SHAPE).replace(b'"0 0 10 10"', b'"0 0 1 100000"'))


def test_a_drawing_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(vector, "WALL_S", 0)
    with pytest.raises(NotDrawable, match="too long"):
        draw(svg(SHAPE))


def test_drawings_of_a_process_are_made_one_at_a_time(monkeypatch):
    """Four logos are fetched at once, and each drawing may take 512 MB."""
    run, counting = child_process.run, threading.Lock()
    running = most = 0

    def counted(*arguments, **options):
        nonlocal running, most
        with counting:
            running, most = running + 1, max(most, running + 1)
        done = run(*arguments, **options)
        with counting:
            running -= 1
        return done

    monkeypatch.setattr(child_process, "run", counted)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(draw, [svg(SHAPE)] * 4))
    assert all(each.startswith(b"\x89PNG") for each in drawn)
    assert most == 1


def test_a_drawing_of_exactly_the_limit_is_taken_and_one_byte_more_is_not(monkeypatch):
    drawn = draw(svg(SHAPE))
    monkeypatch.setattr(vector, "MAX_PNG_BYTES", len(drawn))
    assert draw(svg(SHAPE)) == drawn
    monkeypatch.setattr(vector, "MAX_PNG_BYTES", len(drawn) - 1)
    with pytest.raises(NotDrawable, match="too large to be drawn"):
        draw(svg(SHAPE))
