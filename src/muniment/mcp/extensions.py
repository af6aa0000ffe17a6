"""
The declarations of a tool server for extensions of the protocol: views for people (MCP Apps), and skills.

Source: `io.modelcontextprotocol/ui` of 2026-01-26; `io.modelcontextprotocol/skills`, SEP-2640.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Final

from muniment.kernel.json import JSONMapping, JSONObject

UI: Final = "io.modelcontextprotocol/ui"
SKILLS: Final = "io.modelcontextprotocol/skills"
APP_TYPE: Final = "text/html;profile=mcp-app"
MARKDOWN_TYPE: Final = "text/markdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextResource:
    """
    A text of the server itself, the same for all callers.

    Args:
        meta: the `_meta` of its contents.
        former: how the addresses of its other versions begin, which clients with a cached list of tools ask for.
    """

    uri: str
    name: str
    title: str
    description: str
    mime_type: str
    text: str
    meta: JSONMapping = field(default_factory=dict)
    former: str = ""

    def to_wire(self) -> JSONObject:
        found = {"name": self.name, "title": self.title, "description": self.description}
        return {"uri": self.uri, **found, "mimeType": self.mime_type}

    def is_at(self, uri: str) -> bool:
        """Return whether *uri* is the text's address, or that of another version."""
        return uri == self.uri or bool(self.former and uri.startswith(self.former))


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """
    Instructions for a job, which a client gives its model when the job comes up.

    Args:
        text: the whole SKILL.md: YAML front matter with `name` and `description`, then Markdown.
    """

    text: str

    @property
    def frontmatter(self) -> dict[str, str]:
        """Return the front matter, whose values are plain texts of one line."""
        head = self.text.removeprefix("---\n").partition("\n---\n")[0]
        values = {}
        for line in head.splitlines():
            name, _, value = line.partition(": ")
            values[name] = value
        return values

    @property
    def uri(self) -> str:
        return f"skill://{self.frontmatter['name']}/SKILL.md"

    @property
    def resource(self) -> TextResource:
        """Return the skill as the resource that clients read."""
        front = self.frontmatter
        return TextResource(
            uri=self.uri,
            name=front["name"],
            title=front["name"].replace("-", " ").capitalize(),
            description=front["description"],
            mime_type=MARKDOWN_TYPE,
            text=self.text,
        )

    def to_wire(self) -> JSONObject:
        content = self.text.encode()
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        return {
            "uri": self.uri,
            "frontmatter": self.frontmatter,
            "resources": [{"uri": self.uri, "digest": digest, "size": len(content)}],
        }
