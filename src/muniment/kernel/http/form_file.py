"""The file of a multipart form as the body of a request, streamed."""

from typing import Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from muniment.kernel.asgi import Message, Receive
from muniment.kernel.problems import BadRequest

_MAX_FIELDS_BYTES: Final = 1 << 16
"""The limit of the fields before the file."""


class FormFile:
    """
    Passes on the first file of a form; *receive* returns the form.

    Call :meth:`open` first, then :meth:`receive` as if the file alone had been sent.
    """

    def __init__(self, content_type: bytes, receive: Receive) -> None:
        self.name = ""
        self._receive_form = receive
        self._field, self._value = bytearray(), bytearray()
        self._disposition = b""
        self._is_file = self._is_ended = self._has_name = self._is_read = False
        self._content = bytearray()
        boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_header_field": lambda data, start, end: self._field.extend(data[start:end]),
                    "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._end_headers,
                    "on_part_data": self._add,
                    "on_part_end": self._end,
                },
            )
        except FormParserError:
            raise _unreadable() from None

    async def open(self) -> bool:
        """
        Read up to the file, and set ``name``. Return False if the client disconnected.

        Raises:
            BadRequest: the form has no file, or is not a form.
        """
        read = 0
        while not self._has_name:
            message = await self._next()
            if message["type"] == "http.disconnect":
                return False
            part, more = message.get("body", b""), message.get("more_body", False)
            self._parse(part)
            read += 0 if self._has_name else len(part)
            if not self._has_name and (not more or read > _MAX_FIELDS_BYTES):
                raise BadRequest("The form has no file.", "Choose a file, then send the form.")
            if not more and not self._is_ended:
                raise _unreadable()
        return True

    async def receive(self) -> Message:
        """Return the next part of the file as the message of a body."""
        while not self._content and not self._is_ended:
            message = await self._next()
            if message["type"] == "http.disconnect":
                return message
            self._parse(message.get("body", b""))
            if not message.get("more_body", False) and not self._is_ended:
                raise _unreadable()
        content = bytes(self._content)
        self._content.clear()
        return {"type": "http.request", "body": content, "more_body": not self._is_ended}

    async def discard(self, limit: int) -> None:
        """Read the rest of the form, up to *limit* bytes: a browser shows a response only once it has sent the form."""
        while not self._is_read and limit > 0:
            limit -= len((await self._next()).get("body", b""))

    async def _next(self) -> Message:
        message = await self._receive_form()
        self._is_read = not message.get("more_body", False)
        return message

    def _parse(self, part: bytes) -> None:
        try:
            self._parser.write(part)
        except FormParserError:
            raise _unreadable() from None

    def _begin(self) -> None:
        self._disposition = b""

    def _end_header(self) -> None:
        if self._field.lower() == b"content-disposition":
            self._disposition = bytes(self._value)
        self._field.clear()
        self._value.clear()

    def _end_headers(self) -> None:
        name = parse_options_header(self._disposition)[1].get(b"filename", b"")
        self._is_file = bool(name) and not self._has_name  # without a chosen file, browsers send an empty name
        if self._is_file:
            self.name = name.decode("utf-8", "replace")
            self._has_name = True

    def _add(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self._content += data[start:end]

    def _end(self) -> None:
        self._is_ended = self._is_ended or self._is_file
        self._is_file = False


def _unreadable() -> BadRequest:
    return BadRequest("The form cannot be read.", "Send one file as multipart/form-data.")
