"""
Extract text from a file, page by page, in a separate process with limited time and memory.

The parent calls :func:`extract`. The child is this module run as a program: it reads the file from standard input and
answers in MessagePack. A hostile file can harm only the child, and what the child says is bounded.

Source: decisions, section 5, documents.
"""

import io
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any, BinaryIO, Final
from xml.parsers import expat

import msgspec

from muniment import confinement
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase

MEMORY_BYTES: Final = 512 << 20
CPU_S: Final = 30
WALL_S: Final = 60
MAX_CHARACTERS: Final = 4_000_000
MAX_PAGES: Final = 2_000
MAX_ANSWER_BYTES: Final = 32 << 20
"""More than the characters of all pages take, with their numbers."""
MAX_FAULT_CHARACTERS: Final = 500
_MAX_PART_BYTES: Final = 64 << 20


class NotExtractable(Exception):  # noqa: N818 - a verdict
    """The file has no extractable text. The message is the reason, for the owner."""


Page = tuple[Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGES)], str]


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """The pages of a file with their numbers, in order, or the reason why there are none."""

    pages: Annotated[list[Page], msgspec.Meta(max_length=MAX_PAGES)] = []
    fault: Annotated[str, msgspec.Meta(max_length=MAX_FAULT_CHARACTERS)] = ""


class NotAnAnswer(ValueError):  # noqa: N818 - a verdict
    """The answer has another form or size than the declared one."""


def read_answer(said: bytes) -> Answer:
    """Return the answer of the child; a hostile file may have taken it over, so another form or size is rejected."""
    try:
        # Unlike JSON, MessagePack gives the length of a list first, so a list that is too long is never built.
        answer = msgspec.msgpack.decode(said, type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotAnAnswer from None
    numbers = [number for number, _ in answer.pages]
    is_in_order = numbers == sorted(set(numbers))
    characters = sum(len(text) for _, text in answer.pages)
    if not is_in_order or characters > MAX_CHARACTERS or "\0" in answer.fault:
        raise NotAnAnswer
    return answer


def extract(file: Path, family: str) -> list[tuple[int, str]]:
    """
    Return the text of *file* by page number, counted from 1.

    Args:
        family: the file extension that selects the reader.

    Raises:
        NotExtractable: the file is encrypted, damaged, has no text, or needs too much time or memory.
    """
    from muniment import child_process  # the child does not need it

    try:
        with file.open("rb") as content:
            ended = child_process.run(
                "muniment.documents.content.extraction",
                (family,),
                given=content,
                cpu_s=CPU_S,
                wall_s=WALL_S,
                memory_bytes=child_process.memory_limit(MEMORY_BYTES),
                max_answer_bytes=MAX_ANSWER_BYTES,
            )
    except child_process.SaidTooMuch:
        raise NotExtractable("it holds too much text") from None
    if ended.status == child_process.OUT_OF_TIME:
        raise NotExtractable("reading it took too long")
    try:
        answer = read_answer(ended.answer)
    except NotAnAnswer:
        raise NotExtractable("reading it took too much time or memory, or it is damaged") from None
    if answer.fault:
        raise NotExtractable(answer.fault)
    return [(number, text) for number, text in answer.pages if text.strip()]


# ------------------------------------------------------------------ the child


def _pdf(file: BinaryIO) -> Iterator[str]:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        fault = "it is encrypted" if "assword" in str(error) else "it cannot be opened as a PDF"
        raise NotExtractable(fault) from None
    for number in range(min(len(document), MAX_PAGES)):
        try:
            page = document[number]
            text = page.get_textpage()
            yield text.get_text_bounded().replace("\r\n", "\n").replace("\0", "")
            text.close()
            page.close()
        except pypdfium2.PdfiumError:
            yield ""


def _xml(
    part: IO[bytes],
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], None],
    *,
    most: int | None = _MAX_PART_BYTES,
) -> None:
    """Parse XML by local names. Entity declarations are rejected: they make small XML expand enormously."""

    def refuse(*_: Any) -> None:
        raise NotExtractable("its XML declares entities")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = lambda name, attributes: start(name.rpartition(" ")[2], attributes)
    parser.EndElementHandler = lambda name: end(name.rpartition(" ")[2])
    parser.CharacterDataHandler = text
    read = 0
    while piece := part.read(1 << 16):
        read += len(piece)
        if most is not None and read > most:
            raise NotExtractable("a part of it is too large")
        parser.Parse(piece, False)  # noqa: FBT003 - expat's signature
    parser.Parse(b"", True)  # noqa: FBT003 - expat's signature


def _pieces(part: IO[bytes], *, texts: set[str], ends: set[str]) -> list[str]:
    """Return the text inside the elements *texts*, cut after each of the elements *ends*; the last is the rest."""
    pieces: list[str] = []
    texts_of_piece: list[str] = []
    depth = 0

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal depth
        depth += name in texts
        if name == "tab":
            texts_of_piece.append("\t")
        elif name in {"br", "line-break"}:
            texts_of_piece.append("\n")

    def end(name: str) -> None:
        nonlocal depth
        depth -= name in texts
        if name in ends:
            pieces.append("".join(texts_of_piece))
            texts_of_piece.clear()

    def text(data: str) -> None:
        if depth:
            texts_of_piece.append(data)

    _xml(part, start, end, text)
    return [*pieces, "".join(texts_of_piece)]


def _lines(part: IO[bytes], *, texts: set[str], ends: set[str]) -> str:
    return "\n".join(_pieces(part, texts=texts, ends=ends))


def _numbered(archive: zipfile.ZipFile, folder: str, stem: str) -> list[str]:
    """List the parts ``folder/stemN.xml`` in the order of N."""
    found = []
    for name in archive.namelist():
        number = name.removeprefix(f"{folder}/{stem}").removesuffix(".xml")
        if name == f"{folder}/{stem}{number}.xml" and number.isdigit():
            found.append((int(number), name))
    return [name for _, name in sorted(found)][:MAX_PAGES]


def _docx(file: BinaryIO) -> Iterator[str]:
    with zipfile.ZipFile(file) as archive, archive.open("word/document.xml") as part:
        yield _lines(part, texts={"t"}, ends={"p", "tr"})


def _pptx(file: BinaryIO) -> Iterator[str]:
    with zipfile.ZipFile(file) as archive:
        for name in _numbered(archive, "ppt/slides", "slide"):
            with archive.open(name) as part:
                yield _lines(part, texts={"t"}, ends={"p"})


def _odt(file: BinaryIO) -> Iterator[str]:
    with zipfile.ZipFile(file) as archive, archive.open("content.xml") as part:
        yield _lines(part, texts={"p", "h"}, ends={"p", "h"})


def _xlsx(file: BinaryIO) -> Iterator[str]:
    with zipfile.ZipFile(file) as archive:
        shared: list[str] = []
        if "xl/sharedStrings.xml" in archive.namelist():
            with archive.open("xl/sharedStrings.xml") as part:
                shared = _pieces(part, texts={"t"}, ends={"si"})[:-1]
        for name in _numbered(archive, "xl/worksheets", "sheet"):
            with archive.open(name) as part:
                yield _sheet(part, shared)


def _sheet(part: IO[bytes], shared: list[str]) -> str:
    """Return a sheet's rows, one per line, cells separated by tabs."""
    lines: list[str] = []
    row: list[str] = []
    cell: list[str] = []
    kinds: list[str] = []
    inside = False

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal inside
        if name == "c":
            kinds[:] = [attributes.get("t", "")]
            cell.clear()
        inside = inside or name in {"v", "t"}

    def end(name: str) -> None:
        nonlocal inside
        if name in {"v", "t"}:
            inside = False
        elif name == "c":
            text = "".join(cell)
            if kinds == ["s"] and text.strip().isdigit() and int(text) < len(shared):
                text = shared[int(text)]
            row.append(text)
        elif name == "row":
            lines.append("\t".join(row).rstrip("\t"))
            row.clear()

    def text(data: str) -> None:
        if inside:
            cell.append(data)

    _xml(part, start, end, text, most=None)
    return "\n".join(lines)


def _plain(file: BinaryIO) -> Iterator[str]:
    with io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace") as text:
        yield text.read(MAX_CHARACTERS)


_READERS: Final[dict[str, Callable[[BinaryIO], Iterator[str]]]] = {
    "pdf": _pdf,
    "docx": _docx,
    "xlsx": _xlsx,
    "pptx": _pptx,
    "odt": _odt,
    "text": _plain,
}


def _main(family: str, file: BinaryIO) -> JSONObject:
    pages: list[tuple[int, str]] = []
    characters = 0
    try:
        for number, text in enumerate(_READERS[family](file), 1):
            kept = text[: MAX_CHARACTERS - characters].encode("utf-8", "replace").decode()
            characters += len(kept)
            pages.append((number, kept))
            if characters >= MAX_CHARACTERS or number == MAX_PAGES:
                break
    except NotExtractable as error:
        return {"fault": str(error)[:MAX_FAULT_CHARACTERS]}
    except MemoryError:
        return {"fault": "reading it took too much memory"}
    except Exception as error:  # noqa: BLE001 - parsers raise anything on damaged files
        return {"fault": str(Phrase("it is damaged ({error})", error=type(error).__name__))}
    if not any(text.strip() for _, text in pages):
        return {"fault": "it contains no text, perhaps scanned images"}
    return {"pages": pages}


if __name__ == "__main__":
    [chosen] = confinement.begin()
    sys.stdout.buffer.write(msgspec.msgpack.encode(_main(chosen, sys.stdin.buffer)))
