"""
Bundles (.mcpb) that desktop apps install with a double click: a bridge to a tool server, and its manifest.

Claude's connectors are reached from Anthropic's servers, so an instance in a private network needs a process on the
user's machine. The bridge is a small script without packages (decision 54); desktop apps bring Node.js.

Source: MCPB manifest 0.3 (modelcontextprotocol/mcpb, MANIFEST.md).
"""

import io
import json
import re
import zipfile
from importlib import resources
from typing import Final
from urllib.parse import urlsplit

from muniment import __version__
from muniment.kernel.json import JSONObject
from muniment.web.connecting.links import ConnectableServer

_BRIDGE: Final = "bridge.mjs"
_TOKEN: Final = {
    "type": "string",
    "title": "Personal access token",
    "description": "Create one at /manage/tokens of the registry.",
    "sensitive": True,
    "required": True,
}
_MADE: Final = (1980, 1, 1, 0, 0, 0)
"""The time of each member: the same instance gives the same bytes."""


def bundle(server: ConnectableServer, *, signed_in: bool) -> bytes:
    """
    Return the bundle of *server*.

    Args:
        signed_in: the app asks for a personal access token and keeps it in the system's keychain.
    """
    script = resources.files(__package__).joinpath(_BRIDGE).read_bytes()
    content = {"manifest.json": json.dumps(_manifest(server, signed_in=signed_in), indent=2).encode(), _BRIDGE: script}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name, _MADE), data, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _manifest(server: ConnectableServer, *, signed_in: bool) -> JSONObject:
    parts = urlsplit(server.url)
    host = re.sub(r"[^a-z0-9]+", "-", parts.netloc.lower()).strip("-")
    # Node.js reads certificates of the system then, as a private instance may have one of its own authority.
    environment = {"NODE_USE_SYSTEM_CA": "1"}
    manifest: JSONObject = {
        "manifest_version": "0.3",
        "name": f"{host}-{server.key}",
        "display_name": server.title,
        "version": __version__,
        "description": server.description,
        "author": {"name": "Muniment"},
        "homepage": f"{parts.scheme}://{parts.netloc}",
        "server": {
            "type": "node",
            "entry_point": _BRIDGE,
            "mcp_config": {
                "command": "node",
                "args": [f"${{__dirname}}/{_BRIDGE}", server.url],
                "env": environment,
            },
        },
        "tools_generated": True,
        "prompts_generated": True,
        "compatibility": {"runtimes": {"node": ">=18.0.0"}},
    }
    if signed_in:
        environment |= {"MUNIMENT_TOKEN": "${user_config.token}"}
        manifest["user_config"] = {"token": _TOKEN}
    return manifest
