"""
The interfaces that the documentation describes.

They belong to other surfaces, which the pages do not import: the server hands their descriptions over when it starts.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from muniment.kernel.json import JSONObject


class DescribedServer(NamedTuple):
    """
    A tool server as its clients see it.

    Args:
        tools: as in the answer to ``tools/list``.
        scopes: the scopes of the tools that need one, by the tool's name.
    """

    path: str
    instructions: str
    tools: Sequence[JSONObject]
    scopes: dict[str, str]


class Interfaces:
    """
    Descriptions of the interfaces of this process, made when a page first needs them.

    Args:
        openapi: returns the OpenAPI document.
        public: returns the public tool server.
        owner: returns the owner-scoped tool server.
    """

    def __init__(
        self,
        openapi: Callable[[], JSONObject],
        public: Callable[[], DescribedServer],
        owner: Callable[[], DescribedServer],
    ) -> None:
        self._openapi, self._public, self._owner = openapi, public, owner

    @cached_property
    def openapi(self) -> JSONObject:
        return self._openapi()

    @cached_property
    def public(self) -> DescribedServer:
        return self._public()

    @cached_property
    def owner(self) -> DescribedServer:
        return self._owner()


_described: list[Interfaces] = []


def describe(interfaces: Interfaces) -> None:
    """Let the documentation describe *interfaces*."""
    _described[:] = [interfaces]


def described() -> Interfaces:
    """
    Return the interfaces of this process.

    Raises:
        LookupError: the process serves pages without a server, as a command does.
    """
    if not _described:
        message = "no server has described its interfaces"
        raise LookupError(message)
    return _described[0]
