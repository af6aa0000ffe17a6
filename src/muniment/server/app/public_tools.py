"""
Public tools: the tool server that does not need Django, its cards and its part of the fast path.

The start-up thread imports this module, so that the event loop does not wait for its imports.
"""

from typing import TypedDict

from muniment import __version__
from muniment.mcp.cards import Cards, Identity
from muniment.mcp.protocol.http import OriginPolicy
from muniment.mcp.tools.public import public_server
from muniment.registry_toml.applied import registry_name
from muniment.schema.objects import Schema
from muniment.server.app.app import PUBLIC_PATH, App
from muniment.server.fastpath.tools import PublicToolAnswers
from muniment.store.reader import Reader


class Shared(TypedDict):
    """Arguments shared by both tool servers."""

    gate: OriginPolicy
    base_url: str
    registry_name: str
    schema: Schema


def shared_arguments(app: App, schema: Schema) -> Shared:
    config = app.config
    return {
        "gate": OriginPolicy(config.base_url, config.allowed_hosts, config.allowed_origins),
        "base_url": config.base_url,
        "registry_name": registry_name(),
        "schema": schema,
    }


def mount_public(app: App, reader: Reader, schema: Schema) -> None:
    """Let *app* answer the public tools and their cards."""
    follow = None if app.api is None else app.api.live.follow
    server = public_server(reader, limiter=app.fairness.requests, follow=follow, **shared_arguments(app, schema))
    app.mounts[PUBLIC_PATH] = server
    app.fast_path.tools[PUBLIC_PATH.encode()] = PublicToolAnswers(server)
    cards = Cards(Identity(base_url=app.config.base_url, title=registry_name(), version=__version__))
    app.mounts.update(dict.fromkeys(cards.paths, cards))
