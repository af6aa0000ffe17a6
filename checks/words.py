"""
Check the product's texts: templates mark each text for translation, no text uses a banned word, docstrings say Return.

Print each finding with its place and exit with 1 when there is one. Read committed files only.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from django.template.base import DebugLexer, Token, TokenType

ROOT = Path(__file__).parents[1]
BANNED = (
    (r"who(?:m)?ever|somebody|nobody", "name the actor"),
    (r"anew", "write: again"),
    (r"for ever", "write: permanently"),
    (r"that which|of old|nought|hitherto|whence|thereof", "write it in current English"),
    (r"(?:go|goes|going|went) on", "write: continue"),
    (r"stands?(?! for\b)|stood", "write: is"),
    (r"organisations?", "write: organization"),
)
PATTERNS = [(re.compile(rf"\b(?:{words})\b", re.IGNORECASE), advice) for words, advice in BANNED]
ALLOWED = {
    ("src/muniment/assessments/evaluation/words.py", "organisation"),  # a stop word, in both spellings
    ("src/muniment/mcp/tools/answers.py", "Go on"),  # a member of successful answers, which clients compare
}
"""Pairs of a file and a banned word that it may use."""

READ_ALOUD = re.compile(
    r"(?:\s(?:alt|aria-label|data-done|data-failed|data-label|placeholder|title)"
    r'|<meta name="description" content)="([^"]*)"'
)
"""Attributes whose value people read or hear."""
ELEMENT = re.compile(r"<(script|style)\b.*?</\1>|</?[a-zA-Z!][^<>]*>", re.DOTALL)
TEXTS_OF_TAGS = re.compile(r"""(?:\b(?:\w+_)?(?:title|text|action|label)=|\bdefault(?:_if_none)?:)(["'])([^"']*)\1""")
"""Literals that a tag or a filter shows."""
UNTRANSLATED = {
    *("UTC", "OpenAPI", "llms.txt", "assessment-spec/1", "/companies/", "/people/", "name@example.org"),
    *("claude mcp add --transport http registry ", "website", "submit"),
}
"""Names, addresses, a command and HTML's own values, which are the same in every language."""
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
HOLE = "\0"
"""Replaces each character of a template tag or a variable, so that every other character keeps its place."""


class Text(NamedTuple):
    """A text of a file: where it begins and ends, and its words."""

    start: int
    end: int
    words: str


def unmarked(source: str) -> Iterator[Text]:
    """Find the texts of a template that no ``translate`` or ``blocktranslate`` tag holds."""
    for text in _visible(source, marked=False):
        words = re.sub(r"&#?\w+;", "", text.words).strip(" \n·")
        if re.search(r"[^\W\d_]{2}", words) and words not in UNTRANSLATED:
            yield text
    for token in _tokens(source):
        if token.token_type in {TokenType.BLOCK, TokenType.VAR} and not token.contents.startswith(("trans", "blocktr")):
            for literal in TEXTS_OF_TAGS.finditer(token.contents):
                if re.search(r"[^\W\d_]{2}", literal[2]) and literal[2] not in UNTRANSLATED:
                    yield Text(*token.position, literal[2])


def texts_of_template(source: str) -> Iterator[Text]:
    """Find what people read of a template: marked texts, others, and the literals of tags."""
    yield from _visible(source, marked=True)
    for token in _tokens(source):
        if token.token_type in {TokenType.BLOCK, TokenType.VAR}:
            for literal in re.finditer(r"""(["'])(.*?)\1""", token.contents):
                if " " in literal[2]:
                    yield Text(*token.position, literal[2])


def texts_of_python(source: str) -> Iterator[Text]:
    """Find the literals of several words, docstrings included."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Text(starts[node.lineno - 1], starts[node.end_lineno or node.lineno], node.value)


def texts_of_script(source: str) -> Iterator[Text]:
    """Find the literals of several words."""
    for literal in re.finditer(r'"([^"\n]*)"', source):
        if " " in literal[1]:
            yield Text(*literal.span(1), literal[1])


READERS = {
    ".html": texts_of_template,
    ".txt": texts_of_template,
    ".py": texts_of_python,
    ".js": texts_of_script,
}


def banned(files: Iterable[Path]) -> Iterator[str]:
    """Find banned words in the texts of *files*."""
    for file in files:
        source, place = file.read_text(), str(file.relative_to(ROOT))
        for text in READERS[file.suffix](source):
            for pattern, advice in PATTERNS:
                for match in pattern.finditer(text.words):
                    if (place, match[0]) not in ALLOWED:
                        line = source.count("\n", 0, text.start) + text.words.count("\n", 0, match.start()) + 1
                        yield f"{place}:{line}: {match[0]!r}: {advice}"


def openings(files: Iterable[Path]) -> Iterator[str]:
    """Find docstrings that begin with Give, Say or Tell, for Return or Write; D401 takes them for an imperative."""
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())) if file.suffix == ".py" else ():
            if isinstance(node, DOCUMENTED) and (ast.get_docstring(node) or "").startswith(("Give ", "Say ", "Tell ")):
                yield f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: begin with Return, or what it does"


def untranslated(files: Iterable[Path]) -> Iterator[str]:
    """Find texts of templates that are not marked for translation."""
    for file in files:
        if file.suffix in {".html", ".txt"}:
            source = file.read_text()
            for text in unmarked(source):
                line = source.count("\n", 0, text.start) + 1
                yield f"{file.relative_to(ROOT)}:{line}: mark for translation: {text.words.strip()}"


def _visible(source: str, *, marked: bool) -> Iterator[Text]:
    """Find the runs of text between tags, and those of attributes; with *marked*, those marked for translation too."""
    flat = _without_tags(source, marked=marked)
    for start, end in _readable(flat):
        for match in re.finditer(rf"[^{HOLE}]+", flat[start:end]):
            yield Text(start + match.start(), start + match.end(), match[0])


def _tokens(source: str) -> list[Token]:
    return DebugLexer(source).tokenize()


def _without_tags(source: str, *, marked: bool) -> str:
    flat, is_marked = "", False
    for token in _tokens(source):
        begins = token.token_type == TokenType.BLOCK and token.contents.startswith("blocktranslate")
        ends = token.token_type == TokenType.BLOCK and token.contents == "endblocktranslate"
        is_marked = (is_marked or begins) and not ends
        start, end = token.position
        is_kept = token.token_type == TokenType.TEXT and (marked or not is_marked)
        flat += source[start:end] if is_kept else HOLE * (end - start)
    return flat


def _readable(flat: str) -> Iterator[tuple[int, int]]:
    """Find the spans between HTML elements, and those of attributes that people read."""
    at = 0
    for element in ELEMENT.finditer(flat):
        yield at, element.start()
        at = element.end()
    yield at, len(flat)
    for attribute in READ_ALOUD.finditer(flat):
        yield attribute.span(1)


def committed(folder: str) -> list[Path]:
    """Return the files of *folder* that hold texts, migrations included."""
    names = subprocess.run(["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, check=True).stdout  # noqa: S603, S607 - git of this machine
    files = (ROOT / name for name in names.decode().split("\0") if name)
    # Minified scripts are those of libraries.
    return [file for file in files if file.suffix in READERS and ".min." not in file.name and file.is_file()]


def main() -> int:
    """Run the checks and print what they find."""
    files = committed("src")
    faults = [*untranslated(files), *banned(files), *openings([*files, *committed("tests")])]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
