"""An SMTP server on loopback that stores what it receives."""

import email
import email.policy
from email.message import EmailMessage
from typing import Any, Self

from aiosmtpd.controller import Controller

from services.ports import free_port, wait_until


class Mailbox:
    """The server and its messages; ``url`` is its address."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.port = free_port()
        self._controller: Controller | None = None

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.messages.append(message)
        return "250 kept"

    def wait_for(self, recipient: str, *, subject: str = "", within_s: float = 60) -> EmailMessage:
        """Wait for the latest message to *recipient* whose subject contains *subject*."""
        wait_until(
            lambda: bool(self._to(recipient, subject)), within_s=within_s, what=f"a message to {recipient} ({subject})"
        )
        return self._to(recipient, subject)[-1]

    def _to(self, recipient: str, subject: str) -> list[EmailMessage]:
        return [m for m in self.messages if recipient in str(m["To"]) and subject in str(m["Subject"])]

    def start(self) -> None:
        """Start, also after :meth:`stop`, on the same port."""
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self._controller.start()

    def stop(self) -> None:
        if self._controller is not None:
            self._controller.stop()
            self._controller = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def text_of(message: EmailMessage) -> str:
    """Return the plain text of a message."""
    body = message.get_body(("plain",))
    assert body is not None, message
    text: str = body.get_content()
    return text.replace("\r\n", "\n")
