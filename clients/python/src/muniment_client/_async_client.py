"""The asynchronous client."""

import asyncio
import hashlib
import os
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, Self, TypeVar, overload

import httpx
import msgspec

from muniment_client._async_calls import AsyncCalls, AsyncOwnerCalls
from muniment_client._copy import PATHS, ChangedDocuments, Copy, Entry, is_equal, newest, rows, same_feed
from muniment_client._log import VERIFY_TRIES, LogProof, is_logged
from muniment_client._wire import (
    MAX_BODY_BYTES,
    V1,
    Csv,
    Data,
    Deadline,
    Parameters,
    Place,
    Request,
    Response,
    Retries,
    Rows,
    Verification,
    address,
    commas,
    decoded,
    path,
    resolved,
    tool_call,
    tool_result,
    transport_failure,
)
from muniment_client.errors import (
    BadRequestError,
    HistoryChangedError,
    MalformedResponseError,
    MunimentError,
    NotFoundError,
    TimedOutError,
)
from muniment_client.models import Change, ChangeList, Export
from muniment_client.owner_models import CompleteDocumentUploadResult, GetReportResult

T = TypeVar("T")
Kind = Literal["company", "person", "framework"]
WAIT_S = 50
"""How long the registry holds a request for the next change, or the end of a report."""
SHORT_S = 1.0
"""A request for the next change that comes back sooner, and empty, was not held: the next one is not sent at once."""


class AsyncClient(AsyncCalls):
    """
    A client of one registry.

    Reads are tried again after broken connections and when the registry asks for it; what changes something only if the
    registry says that it did nothing.

    Args:
        base_url: for example ``https://registry.example``.
        token: a personal access token, for `owner`.
        timeout_s: how long a response may take.
        http_client: an own client, for example with a proxy; it is not closed.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        timeout_s: float = 30.0,
        retries: Retries = Retries(),  # noqa: B008 - it is immutable
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._token = token
        self._timeout_s = timeout_s
        self._retries = retries
        self._is_own = http_client is None
        self._http = http_client or httpx.AsyncClient(headers={"User-Agent": "muniment-client"})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._is_own:
            await self._http.aclose()

    @property
    def owner(self) -> "AsyncOwner":
        """
        The tools of the account that the token belongs to.

        Raises:
            ValueError: the client has no token.
        """
        if not self._token:
            raise ValueError("Pass a token: create one at /manage/tokens of the registry.")
        return AsyncOwner(self, self._token)

    async def get(self, path: str, type_: type[T], parameters: Parameters | None = None) -> T:
        """Return the response of any path, decoded as *type_*: `dict`, or a struct with members of your own."""
        return decoded((await self._read(path, parameters)).body, type_)

    async def _get(self, path: str, parameters: Parameters, type_: type[T]) -> T:
        wait = float(parameters.get("waitSeconds") or 0)
        return decoded((await self._read(path, parameters, waits_s=wait)).body, type_)

    async def _data(self, path: str, parameters: Parameters, type_: type[T]) -> T:
        return decoded((await self._read(path, parameters)).body, Data[type_]).data  # type: ignore[valid-type]  # at run time

    async def _csv(self, path: str, parameters: Parameters) -> Csv:
        response = await self._read(path, {**parameters, "format": "csv"})
        if not response.headers.get("content-type", "").startswith("text/csv"):
            raise MalformedResponseError("The response is no CSV.")
        return Csv(response.body, response.headers.get("x-muniment-truncated"))

    async def _by_cursor(self, path: str, parameters: Parameters, type_: type[Any]) -> AsyncIterator[Any]:
        asked: dict[str, Any] = {"pageSize": 100, **_without_none(parameters)}
        while True:
            page = await self._get(path, asked, type_)
            for item in page.data:
                yield item
            if page.pagination.next_cursor is None:
                return
            asked["cursor"] = page.pagination.next_cursor

    async def _by_page(self, path: str, parameters: Parameters, type_: type[Any]) -> AsyncIterator[Any]:
        asked: dict[str, Any] = {"pageSize": 100, **_without_none(parameters)}
        while True:
            page = await self._get(path, asked, type_)
            for item in page.data:
                yield item
            if page.next_page is None:
                return
            asked["page"] = page.next_page

    @overload
    async def query(self, sql: str, **values: str | float) -> Rows[dict[str, Any]]: ...

    @overload
    async def query(self, sql: str, into: type[T], **values: str | float) -> Rows[T]: ...

    async def query(self, sql: str, into: Any = dict[str, Any], **values: str | float) -> Rows[Any]:
        """
        Return the answer to one statement in the SQL of SQLite about the tables of `list_tables`.

        Args:
            into: the type of a row, for example a struct with the columns as members.
            values: parameters of the statement; `:city` is given by `city`.
        """
        response = await self._read(f"{V1}/query", {**values, "sql": sql})
        answer: Rows[Any] = decoded(response.body, Rows[into])
        return answer

    async def query_csv(self, sql: str, **values: str | float) -> Csv:
        """Return the answer to a statement as a CSV file; its `truncated` says what cut it."""
        return await self._csv(f"{V1}/query", {**values, "sql": sql})

    async def head(self) -> Place:
        """Return the end of the change feed, to follow what comes from now on."""
        edition = await self._edition()
        page = await self.list_changes(after=max(edition - 1, 0))
        return Place(page.next_after, page.chain, page.feed_id)

    async def changes(
        self,
        place: Place = Place(),  # noqa: B008 - it is immutable
        *,
        kind: Kind | Sequence[Kind] | None = None,
        ids: str | Sequence[str] | None = None,
        include_document: bool = False,
        follow: bool = True,
    ) -> AsyncIterator[Change]:
        """
        Iterate over the changes after *place*, oldest first.

        To continue later, store ``Place(change.sequence, change.chain)`` of the last one.

        Args:
            follow: at the end, wait for the next change; otherwise stop.

        Raises:
            HistoryChangedError: the feed does not continue *place*: begin again from an export.
        """
        filters = {"kind": commas(kind), "ids": commas(ids), "include": "document" if include_document else None}
        async for page in self._pages_of_changes(place, filters, ChangeList, follow=follow):
            for change in page.data:
                yield change

    async def _pages_of_changes(
        self, place: Place, filters: Parameters, type_: type[T], *, follow: bool
    ) -> AsyncIterator[T]:
        while True:
            asked = {**filters, "after": place.after, "chain": place.chain, "waitSeconds": WAIT_S if follow else None}
            begun = time.monotonic()
            page: Any = await self._changes_after(asked, type_)
            same_feed(place, page.feed_id)
            place = Place(page.next_after, page.chain, page.feed_id)
            yield page
            if not follow and page.next_after >= (page.head or 0):
                return
            if not page.data and follow and time.monotonic() - begun < SHORT_S:
                await asyncio.sleep(SHORT_S)

    async def _changes_after(self, asked: Mapping[str, Any], type_: type[T]) -> T:
        try:
            return await self._get(f"{V1}/changes", asked, type_)
        except BadRequestError as error:
            # The code is that of any invalid value. If the same is accepted at the end of the feed, the place is it.
            valid = {**asked, "after": await self._edition(), "chain": None, "waitSeconds": None}
            await self._get(f"{V1}/changes", valid, type_)
            raise HistoryChangedError(error.message) from error

    async def _edition(self) -> int:
        response = await self._read(f"{V1}/stats")
        edition = response.headers.get("x-muniment-edition", "")
        if not edition.isdigit():
            raise MalformedResponseError("The response names no edition.")
        return int(edition)

    async def download(self, export: Export, file: str | Path) -> None:
        """
        Download an export file, and verify its SHA-256.

        Raises:
            MalformedResponseError: it is not the file that was listed; nothing is left of it.
        """
        target = Path(file)
        unfinished = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            with unfinished.open("wb") as sink:
                await self._download(export.url, sink)
            with unfinished.open("rb") as got:
                if hashlib.file_digest(got, "sha256").hexdigest() != export.sha256:
                    raise MalformedResponseError(f"{export.name} does not have the SHA-256 that the registry lists.")
            os.replace(unfinished, target)  # noqa: PTH105 - it replaces, on every system
        finally:
            unfinished.unlink(missing_ok=True)

    async def _download(self, url: str, sink: IO[bytes]) -> None:
        request = Request("GET", resolved(self.base_url, url), {}, has_deadline=False)
        await self._send(request, sink)

    async def mirror(self, file: str | Path, *, follow: bool = False) -> Place:
        """
        Copy the registry to one SQLite file, from an export and the changes since then; continue if it exists.

        `Copy` reads the file. A program that is killed continues where it was.

        Args:
            follow: never return, and store changes as they come.

        Raises:
            HistoryChangedError: the registry has another history than the copy. The copy is left as it is.
        """
        with Copy(file, self.base_url) as copy:
            place = copy.place or await self._copy_all(copy)
            filters = {"include": "document"}
            async for page in self._pages_of_changes(place, filters, ChangedDocuments, follow=follow):
                entries = [await self._entry(change) for change in page.data]
                place = Place(page.next_after, page.chain, page.feed_id)
                await asyncio.to_thread(copy.apply, entries, place)
            return place

    async def _entry(self, change: Any) -> Entry:
        """Return what a change left, and read a document that is too large to come along."""
        if change.document is msgspec.UNSET:
            return Entry(change.kind, change.id, await self._document(change.kind, change.id))
        document = bytes(change.document)
        return Entry(change.kind, change.id, None if document == b"null" else document)

    async def _document(self, kind: str, key: str) -> bytes | None:
        try:
            response = await self._read(path(f"{V1}/{PATHS[kind]}/{{key}}", key))
        except NotFoundError:
            return None
        return bytes(decoded(response.body, Data[msgspec.Raw]).data)

    async def _copy_all(self, copy: Copy) -> Place:
        """Store the newest export, and return the place after it; the beginning of the feed if there is none."""
        files = newest((await self.list_exports()).data)
        if not files:
            return Place()
        edition = next(iter(files.values())).edition
        page = await self.list_changes(after=max(edition - 1, 0), limit=1)
        place = Place(edition, page.chain if page.next_after == edition else None, page.feed_id)
        entries: list[Entry] = []
        for kind, export in files.items():
            with tempfile.TemporaryFile() as file:
                await self._download(export.url, file)
                entries.extend(rows(kind, export, file))
        await asyncio.to_thread(copy.replace, entries, place)
        return place

    async def verify(
        self,
        kind: Kind,
        key: str,
        document: bytes | Mapping[str, Any],
        *,
        log_key: str | None = None,
        witnesses: Sequence[str] = (),
    ) -> Verification:
        """
        Compare a document that you hold with the one that the registry publishes now, and that one with the public log.

        Args:
            document: its JSON as it was published, which is compared byte for byte; or decoded, then by its members.
            log_key: the key of the log, which must have signed; needs the extra ``muniment-client[log]``.
            witnesses: the keys of witnesses, all of which must have cosigned the checkpoint; needs the same extra.
        """
        found = await self._verified(kind, key, document, log_key, witnesses)
        for _ in range(VERIFY_TRIES - 1):
            if found.is_logged or not found.checkpoint:
                break
            # The document may have changed between the two requests.
            found = await self._verified(kind, key, document, log_key, witnesses)
        return found

    async def _verified(
        self,
        kind: Kind,
        key: str,
        document: bytes | Mapping[str, Any],
        log_key: str | None,
        witnesses: Sequence[str],
    ) -> Verification:
        try:
            response = await self._read(path(f"{V1}/{PATHS[kind]}/{{key}}", key))
        except NotFoundError:
            return Verification(is_published=False, is_current=False, sha256="", edition=await self._edition())
        published = decoded(response.body, Data[msgspec.Raw]).data
        found = Verification(
            is_published=True,
            is_current=is_equal(document, published),
            sha256=hashlib.sha256(published).hexdigest(),
            edition=int(response.headers.get("x-muniment-edition", "0")),
        )
        asked = {"kind": kind, "id": key}
        if witnesses:
            asked["cosignatures"] = str(len(set(witnesses)))
        try:
            answer = await self._read(f"{V1}/log/proof", asked)
        except NotFoundError:
            return found
        proof = decoded(answer.body, Data[LogProof]).data
        is_in_log = is_logged(kind, key, response.body, proof, log_key=log_key, witnesses=witnesses)
        return found._replace(is_logged=is_in_log, checkpoint=proof.checkpoint)

    async def verify_history(self, place: Place) -> None:
        """
        Check that the registry still has the history that led to *place*.

        Raises:
            HistoryChangedError: it has not.
        """
        async for _ in self._pages_of_changes(place, {"limit": 1}, ChangeList, follow=False):
            return

    async def _read(self, path: str, parameters: Parameters | None = None, *, waits_s: float = 0.0) -> Response:
        return await self._send(Request("GET", address(self.base_url, path, parameters), {}, waits_s=waits_s))

    async def _send(self, request: Request, sink: IO[bytes] | None = None) -> Response:
        """Send a request, as often as it may be repeated; the body of a success goes to *sink*, if there is one."""
        attempt = 0
        while True:
            failure: MunimentError
            try:
                response = await self._once(request, sink)
                if response.status < 400:
                    return response
                failure = response.problem()
            except MunimentError as error:
                failure = error
            pause = self._retries.pause(attempt, failure, request)
            if pause is None:
                raise failure
            await asyncio.sleep(pause)
            attempt += 1

    async def _once(self, request: Request, sink: IO[bytes] | None) -> Response:
        seconds = self._timeout_s + request.waits_s
        deadline = Deadline(seconds if request.has_deadline else None)
        body = bytearray()
        if sink is not None:
            sink.seek(0)
            sink.truncate()
        try:
            async with self._http.stream(
                request.method,
                request.url,
                headers=request.headers,
                content=request.content,
                timeout=httpx.Timeout(self._timeout_s, read=seconds),
                follow_redirects=request.reads,
            ) as response:
                async for part in response.aiter_bytes():
                    deadline.check()
                    if sink is not None and response.status_code < 400:
                        sink.write(part)
                        continue
                    body += part
                    if len(body) > MAX_BODY_BYTES:
                        raise MalformedResponseError("The response is longer than any of a registry.")
                return Response(response.status_code, response.headers, bytes(body))
        except httpx.HTTPError as error:
            raise transport_failure(error) from error


class AsyncOwner(AsyncOwnerCalls):
    """The tools of an account: each does what its name says, and returns what the registry answers."""

    def __init__(self, client: AsyncClient, token: str) -> None:
        self._client = client
        self._token = token

    async def _tool(self, name: str, arguments: Mapping[str, Any], type_: type[T], *, reads: bool) -> T:
        request = tool_call(self._client.base_url, self._token, name, arguments, reads=reads)
        return tool_result(await self._client._send(request), type_)  # noqa: SLF001 - a part of the client

    async def _tool_data(self, name: str, arguments: Mapping[str, Any], type_: type[T], *, reads: bool) -> T:
        answer: Any = await self._tool(name, arguments, Data[type_], reads=reads)  # type: ignore[valid-type]  # at run time
        data: T = answer.data
        return data

    async def upload(
        self, company_slug: str, file: str | Path, *, filename: str | None = None, content_type: str | None = None
    ) -> CompleteDocumentUploadResult:
        """Upload a document of a company from a file; its name and kind are those of the file by default."""
        source = Path(file)
        content = await asyncio.to_thread(source.read_bytes)
        link = await self.create_document_upload(
            company_slug=company_slug,
            filename=filename or source.name,
            size_bytes=len(content),
            content_type=content_type,
            sha256=hashlib.sha256(content).hexdigest(),
        )
        if link.url is None or link.upload_id is None:
            raise MalformedResponseError("The registry has named no address for the upload.")
        headers = {"Content-Type": link.headers.content_type or "application/octet-stream"}
        put = Request("PUT", resolved(self._client.base_url, link.url), headers, content, reads=False)
        await self._client._send(put)  # noqa: SLF001 - a part of the client
        return await self.complete_document_upload(upload_id=link.upload_id)

    async def assess(
        self,
        company_slug: str,
        framework_id: str,
        *,
        document_ids: Sequence[str] | None = None,
        max_cost: int | None = None,
        timeout_s: float = 3600.0,
    ) -> GetReportResult:
        """
        Order a report, wait for it, and return it. Credits are charged if it succeeds.

        Args:
            document_ids: ready documents to quote from.
            max_cost: do not pay more credits than these.

        Raises:
            ValueError: it costs more; nothing was paid.
            MunimentError: the run failed; nothing was paid.
            TimedOutError: it still runs; `list_my_runs` has it.
        """
        run = await self.start_report_run(
            company_slug=company_slug,
            framework_id=framework_id,
            document_ids=document_ids,
            idempotency_key=uuid.uuid4().hex,
        )
        if run.run_id is None:
            raise MalformedResponseError("The registry has named no run.")
        if max_cost is not None and run.cost > max_cost:
            await self.cancel_report_run(run_id=run.run_id)
            raise ValueError(f"The report costs {run.cost} credits.")
        ends = time.monotonic() + timeout_s
        await self.execute_report_run(run_id=run.run_id, wait_seconds=WAIT_S)
        state = await self.get_report_run_status(run_id=run.run_id)
        while state.should_poll:
            if time.monotonic() > ends:
                raise TimedOutError(f"The run {run.run_id} is not finished yet.")
            state = await self.get_report_run_status(run_id=run.run_id, wait_seconds=WAIT_S)
        if state.state != "succeeded":
            raise MunimentError(f"The run ended as {state.state}: {state.error or 'no reason is given'}.")
        return await self.get_report(run_id=run.run_id, format="full")


def _without_none(parameters: Parameters) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}
