"""
The document tools of the owner-scoped server.

Source: tools, Owner-scoped server; decisions, section 5, documents.
"""

import binascii
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any, Final

from muniment.documents import operations, records, uploads
from muniment.documents.content import inspection
from muniment.documents.models import Document, DocumentState, TextState
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest
from muniment.kernel.wire import timestamp
from muniment.mcp.declarations import Arguments, Caller, Tool
from muniment.mcp.tools import truncation
from muniment.mcp.tools.output_schemas import (
    BOOLEAN,
    INTEGER,
    MOMENT,
    STRING,
    object_of,
    one_of,
    paged,
    single,
)

Call = Callable[..., Awaitable[Any]]

_MAX_BASE64: Final = 16_384
"""Above the limit of small files, so that the operation can refer to the other tool."""
_SLUG: Final = {"type": "string", "minLength": 1, "maxLength": 200, "description": "id of a list_my_companies item"}
_NAME: Final = {"type": "string", "maxLength": 1000, "description": "the file's name, such as report.pdf"}
_TYPE: Final = {"type": "string", "maxLength": 200, "description": "by the extension if omitted"}
_ID: Final = {"type": "string", "minLength": 1, "maxLength": 100}
_DOCUMENT: Final = object_of(
    {
        "documentId": STRING,
        "companySlug": STRING,
        "filename": STRING,
        "contentType": STRING,
        "sizeBytes": INTEGER,
        "sha256": STRING,
        "state": one_of(*DocumentState.values),
        "createdAt": MOMENT,
        "textState": one_of(*TextState.values),
        "note": {**STRING, "description": "why it was rejected, not scanned, or has no text"},
        "filenameTruncated": BOOLEAN,
        "filenameUrl": STRING,
        "noteTruncated": BOOLEAN,
        "noteUrl": STRING,
    },
    optional=("note", "filenameTruncated", "filenameUrl", "noteTruncated", "noteUrl"),
)
_UPLOAD: Final = object_of(
    {
        "uploadId": STRING,
        "url": STRING,
        "method": one_of("PUT"),
        "headers": object_of({"Content-Type": STRING}),
        "command": {**STRING, "description": "for a shell in the file's folder, on the user's computer"},
        "maxBytes": INTEGER,
        "expiresAt": MOMENT,
    }
)
_DELETED: Final = object_of({"documentId": STRING, "deletedAt": MOMENT, "restorableUntil": MOMENT})
_QUOTA: Final = object_of({"usedBytes": INTEGER, "limitBytes": INTEGER})


class DocumentTools:
    """
    The handlers.

    Args:
        call: runs an operation in a thread.
    """

    def __init__(self, call: Call, base_url: str) -> None:
        self._call = call
        self._base_url = base_url

    async def list_my_documents(self, arguments: Arguments, caller: Caller) -> bytes:
        def work() -> bytes:
            found = operations.list_documents(
                caller.owner,
                arguments.get("companySlug"),
                page=arguments.get("page", 1),
                page_size=arguments.get("pageSize", 25),
            )
            rest = {**truncation.paging(found), "quota": found.quota.to_wire()}
            shown = [records.to_wire(document) for document in found.items]
            return truncation.page(shown, rest, lambda _: f"{self._base_url}/manage/documents")

        answer: bytes = await self._call(work)
        return answer

    async def upload_document(self, arguments: Arguments, caller: Caller) -> JSONObject:
        def work() -> JSONObject:
            return _answer(
                uploads.upload_document(
                    caller.owner,
                    arguments["companySlug"],
                    arguments["filename"],
                    _content(arguments),
                    content_type=arguments.get("contentType"),
                )
            )

        return await self._run(work)

    async def create_document_upload(self, arguments: Arguments, caller: Caller) -> JSONObject:
        def work() -> JSONObject:
            upload = uploads.begin_upload(
                caller.owner,
                arguments["companySlug"],
                arguments["filename"],
                arguments["sizeBytes"],
                content_type=arguments.get("contentType"),
                sha256=arguments.get("sha256"),
                base_url=self._base_url,
            )
            return {"data": upload.to_wire()}

        return await self._run(work)

    async def complete_document_upload(self, arguments: Arguments, caller: Caller) -> JSONObject:
        return await self._run(lambda: _answer(uploads.complete_upload(caller.owner, arguments["uploadId"])))

    async def delete_document(self, arguments: Arguments, caller: Caller) -> JSONObject:
        def work() -> JSONObject:
            document = operations.delete_document(caller.owner, arguments["documentId"])
            restorable = records.restorable_until(document)
            gone = {"documentId": document.pk, "deletedAt": timestamp(document.deleted_at or restorable)}
            return {"data": {**gone, "restorableUntil": timestamp(restorable)}}

        return await self._run(work)

    async def _run(self, work: Callable[[], JSONObject]) -> JSONObject:
        answer: JSONObject = await self._call(work)
        return answer


def _answer(document: Document) -> JSONObject:
    return {"data": records.to_wire(document)}


def _content(arguments: Arguments) -> bytes:
    """
    Return the bytes of a small file.

    Raises:
        BadRequest: both forms, neither, or invalid base64.
    """
    text, encoded = arguments.get("text"), arguments.get("contentBase64")
    if (text is None) == (encoded is None):
        raise BadRequest(
            "Send the content either as text or as contentBase64.",
            "Use text for a text file, contentBase64 for any other.",
        )
    if text is not None:
        return str(text).encode()
    try:
        return b64decode("".join(str(encoded).split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest(
            "contentBase64 is not base64.",
            "Encode it again, or use create_document_upload, which uploads the file itself.",
        ) from None


def document_tools(call: Call, base_url: str) -> tuple[Tool, ...]:
    """
    Return the document tools.

    Args:
        call: runs an operation in a thread.
        base_url: the public URL, without a trailing slash.
    """
    tools = DocumentTools(call, base_url)
    return (
        Tool(
            name="list_my_documents",
            title="List my documents",
            description="Documents of your companies, newest first, with your storage quota.",
            arguments={
                "companySlug": {**_SLUG, "description": "only this company's"},
                "page": {"type": "integer", "minimum": 1, "maximum": 10**9, "default": 1},
                "pageSize": {"type": "integer", "minimum": 1, "maximum": 100, "default": 25},
            },
            answer={**paged(_DOCUMENT), "quota": _QUOTA},
            handler=tools.list_my_documents,
            scope="documents:read",
            read_only=True,
            idempotent=True,
        ),
        Tool(
            name="upload_document",
            title="Upload a small document",
            description=(
                f"Store a file of at most {records.SMALL_BYTES:,} bytes. For larger files use "
                f"create_document_upload. Accepted: {inspection.TAKEN}."
            ),
            arguments={
                "companySlug": _SLUG,
                "filename": _NAME,
                "contentType": _TYPE,
                "text": {"type": "string", "maxLength": _MAX_BASE64, "description": "the content of a text file"},
                "contentBase64": {"type": "string", "maxLength": _MAX_BASE64, "description": "any other content"},
            },
            required=("companySlug", "filename"),
            answer=single(_DOCUMENT),
            handler=tools.upload_document,
            scope="documents:write",
        ),
        Tool(
            name="create_document_upload",
            title="Get an upload link",
            description=(
                "Step 1 of 3 for larger files: get a link that accepts this file once, within "
                f"{records.LINK_MINUTES} minutes. Step 2: run `command` in the file's folder, on the computer that "
                "has it. Step 3: complete_document_upload."
            ),
            arguments={
                "companySlug": _SLUG,
                "filename": _NAME,
                "sizeBytes": {"type": "integer", "minimum": 0, "maximum": 10**15, "description": "its exact size"},
                "contentType": _TYPE,
                "sha256": {"type": "string", "maxLength": 100, "description": "verified after the upload"},
            },
            required=("companySlug", "filename", "sizeBytes"),
            answer=single(_UPLOAD),
            handler=tools.create_document_upload,
            scope="documents:write",
        ),
        Tool(
            name="complete_document_upload",
            title="Complete an upload",
            description="Step 3 of 3: verify the uploaded file and store it. Safe to repeat.",
            arguments={"uploadId": _ID},
            required=("uploadId",),
            answer=single(_DOCUMENT),
            handler=tools.complete_document_upload,
            scope="documents:write",
            idempotent=True,
        ),
        Tool(
            name="delete_document",
            title="Delete a document",
            description=(
                f"Delete a document; owners can restore it at /manage/documents for {records.RESTORE_DAYS} days. "
                "Fails while a queued or running report uses it."
            ),
            arguments={"documentId": _ID},
            required=("documentId",),
            answer=single(_DELETED),
            handler=tools.delete_document,
            scope="documents:write",
            destructive=True,
            idempotent=True,
        ),
    )
