"""
Draw an SVG logo as a PNG, in a separate process with limited time and memory.

The parent calls :func:`draw`. The child is this module run as a program: it reads the SVG from standard input and
writes a PNG, or a sentence. What the renderer can be made to do, such as reading a local file, drawing for minutes or
crashing, is refused before it is called; what is overlooked harms only the child.
"""

import sys
from threading import Lock
from typing import Final
from xml.parsers import expat

from muniment import confinement
from muniment.kernel.phrases.phrase import Phrase

MAX_BYTES: Final = 200_000
CPU_S: Final = 3
WALL_S: Final = 10
MEMORY_BYTES: Final = 512 << 20
"""Maximum memory of all drawings of a process together: there is one at a time."""
SIDE: Final = 512
MAX_PNG_BYTES: Final = 8 << 20
"""More than the pixels of a drawing take."""
MAX_ELEMENTS: Final = 5_000
MAX_DEPTH: Final = 40
_SVG: Final = "http://www.w3.org/2000/svg"
_SEPARATOR: Final = " "
_ALLOWED: Final = frozenset(
    {
        *("svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon"),
        *("defs", "linearGradient", "radialGradient", "stop", "use", "symbol", "clipPath", "mask"),
        *("title", "desc", "metadata", "style", "switch"),
    }
)
"""Elements that draw shapes. Text would need fonts that servers lack, and pictures and filters can cost without end."""
_PNG: Final = b"\x89PNG"
_drawing = Lock()


class NotDrawable(ValueError):  # noqa: N818 - a verdict
    """The file is not an SVG that can be drawn safely; the message is the reason."""


def is_vector(content: bytes) -> bool:
    """Return whether *content* looks like an SVG."""
    return b"<svg" in content[:4_096].lower() and b"\0" not in content[:4_096]


def draw(content: bytes) -> bytes:
    """
    Return *content* as a PNG.

    Raises:
        NotDrawable: it is damaged, has what logos need not have, or takes too long.
    """
    if len(content) > MAX_BYTES:
        raise NotDrawable(Phrase("the SVG is larger than {kilobytes} KB", kilobytes=MAX_BYTES // 1_000))
    from muniment import child_process  # the child does not need it

    with _drawing:
        try:
            ended = child_process.run(
                "muniment.registry.logos.vector",
                given=content,
                cpu_s=CPU_S,
                wall_s=WALL_S,
                memory_bytes=child_process.memory_limit(MEMORY_BYTES),
                max_answer_bytes=MAX_PNG_BYTES,
            )
        except child_process.SaidTooMuch:
            raise NotDrawable("the SVG is too large to be drawn") from None
    if ended.answer.startswith(_PNG):
        return ended.answer
    if ended.answer:
        raise NotDrawable(ended.answer.decode("utf-8", "replace")[:200])
    if ended.status == child_process.OUT_OF_TIME:
        raise NotDrawable("drawing the SVG took too long")
    raise NotDrawable("drawing the SVG took too much time or memory")


def check(content: bytes) -> None:
    """Raise NotDrawable unless *content* is a well-formed SVG with allowed elements that refers only to itself."""
    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    depth = count = 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        space, _, local = name.rpartition(_SEPARATOR)
        if depth > MAX_DEPTH or count > MAX_ELEMENTS:
            raise NotDrawable("the SVG has too many elements")
        if depth == 1 and (space, local) != (_SVG, "svg"):
            raise NotDrawable("the file is not an SVG")
        if space == _SVG and local not in _ALLOWED:
            raise NotDrawable(Phrase("the SVG has the element {element}, which is not accepted", element=local[:40]))
        for attribute, value in attributes.items():
            if attribute.rpartition(_SEPARATOR)[2] == "href" and not value.startswith("#"):
                raise NotDrawable("the SVG refers to another file")

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise NotDrawable("the SVG declares entities, which are not accepted")

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)  # noqa: FBT003 - expat's signature
    except expat.ExpatError as error:
        raise NotDrawable(Phrase("the SVG is not well-formed: {error}", error=error)) from None


def _main() -> None:
    confinement.begin()
    content = sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        check(content)
        import resvg_py

        drawn = resvg_py.svg_to_bytes(svg_string=content.decode(), width=SIDE, skip_system_fonts=True)
    except (NotDrawable, UnicodeDecodeError, ValueError) as fault:
        sys.stdout.write(str(fault) or "the SVG cannot be drawn")
        return
    sys.stdout.buffer.write(bytes(drawn))


if __name__ == "__main__":
    _main()
