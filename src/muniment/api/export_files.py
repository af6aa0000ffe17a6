"""Serve the export files: whole, in ranges, and not again if the client has them."""

import asyncio
from concurrent.futures import Executor
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final

from muniment.api.parameters import V1
from muniment.api.responses import EXPOSED
from muniment.kernel.asgi import Header, Receive, Scope, Send
from muniment.kernel.problems import NotFound, Unavailable
from muniment.kernel.wire import parse_timestamp
from muniment.registry_toml.applied import current
from muniment.store.exports.exports import Exports
from muniment.store.exports.files import LATEST, FoundFile
from muniment.store.exports.shared import NotKnownYet

WAIT_S: Final = 25.0
"""Seconds that a request waits for the first files of an instance."""
PAUSES_S: Final = (0.2, 0.5)
"""Seconds to pause after each attempt that wrote no files: another node may be writing the same ones."""


def no_export(name: str) -> NotFound:
    return NotFound(f'There is no export named "{name[:200]}".', f"GET {V1}/exports lists the current files.")


async def until_made(exports: Exports) -> None:
    """Wait for the first files of this registry; raise Unavailable if there are none soon."""
    if not exports.are_due():
        return
    for pause_s in PAUSES_S:
        making = asyncio.wrap_future(exports.request())
        await asyncio.wait((making,), timeout=WAIT_S)
        if exports.files():
            return
        await asyncio.sleep(pause_s)
    if not exports.files():
        raise Unavailable("There are no export files yet.", "Try again in a few seconds.", retry_after_s=5)


async def find_export(exports: Exports, name: str, pool: Executor) -> FoundFile:
    """
    Return a file of this node or, if another node lists it, of the store that all nodes share.

    Raises:
        NotFound: no node lists it.
        Unavailable: it is not here, and the store does not answer or was asked too often.
    """
    if LATEST.fullmatch(name):
        await until_made(exports)
    found = exports.find(name)
    if found is None and exports.may_fetch(name):
        try:
            found = await asyncio.get_running_loop().run_in_executor(pool, exports.fetch, name)
        except OSError:
            message = "The document store does not answer, and this export is not on this node."
            raise Unavailable(message, "Try again in a few seconds.", retry_after_s=5) from None
        except NotKnownYet:
            message = "Whether another node has this export is not known yet."
            raise Unavailable(message, "Try again in a second.", retry_after_s=1) from None
    if found is None:
        raise no_export(name)
    return found


async def send_export(found: FoundFile, scope: Scope, receive: Receive, send: Send) -> None:
    """
    Send an export; raise NotFound if it was removed meanwhile.

    Source: RFC 9110, sections 13 and 14.
    """
    from starlette.responses import FileResponse, Response  # imported by the first download

    headers = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": f"{EXPOSED.decode()}, Accept-Ranges, Content-Range",
        "Cache-Control": "public, max-age=86400, immutable",
    }
    if found.is_latest:  # the next export gets the same address
        headers["Cache-Control"] = "public, max-age=30"
    licence_url = current().registry.licence_url
    if licence_url:
        headers["Link"] = f'<{licence_url}>; rel="license"'
    headers["ETag"] = f'"{found.file.sha256}"'
    headers["Last-Modified"] = format_datetime(parse_timestamp(found.file.at), usegmt=True)
    if _has_it(scope["headers"], headers["ETag"], headers["Last-Modified"]):
        await Response(None, 304, headers)(scope, receive, send)
        return
    try:
        details = found.path.stat()
    except FileNotFoundError:
        raise no_export(found.path.name) from None
    file = FileResponse(
        found.path, headers=headers, media_type="application/gzip", filename=found.path.name, stat_result=details
    )
    # By this revision the server tells of a disconnect when sending; by earlier ones Starlette would keep receiving.
    await file({**scope, "asgi": {"version": "3.0", "spec_version": "2.4"}}, receive, send)


def _has_it(lines: list[Header], etag: str, modified: str) -> bool:
    """Return whether the client has this version; ``If-None-Match`` counts before ``If-Modified-Since``."""
    headers = {name: value.decode("latin-1") for name, value in lines}
    if_none_match = headers.get(b"if-none-match")
    if if_none_match is not None:
        tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
        return if_none_match.strip() == "*" or etag in tags
    try:
        # A later date proves nothing: the copy may be of a history that was lost.
        return parsedate_to_datetime(modified) == parsedate_to_datetime(headers.get(b"if-modified-since", ""))
    except (TypeError, ValueError):
        return False
