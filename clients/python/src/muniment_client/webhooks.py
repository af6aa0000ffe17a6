"""Verify messages of webhooks (Standard Webhooks, version 1)."""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from muniment_client.errors import MunimentError

TOLERANCE_S: Final = 300


class WebhookVerificationError(MunimentError):
    """The message is not from the registry, or too old: answer with status 400, and ignore it."""


class WebhookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """
    What happened.

    Args:
        id: the same in each attempt: remember it, and ignore what you have seen.
        type: for example ``listing.updated``.
    """

    id: str
    type: str
    timestamp: str
    data: dict[str, Any]


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes, *, tolerance_s: float = TOLERANCE_S
) -> WebhookEvent:
    """
    Return the event of a message, if it was signed with *secret*.

    Args:
        body: the bytes as they came.

    Raises:
        WebhookVerificationError: the signature is wrong, or the time too far from now.
    """
    given = {name.lower(): value for name, value in headers.items()}
    message_id, sent_at = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not (sent_at.isascii() and sent_at.isdigit()) or abs(time.time() - int(sent_at[:15])) > tolerance_s:
        raise WebhookVerificationError("The time of the message is missing, or too far from now.")
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error as error:
        raise ValueError("The secret of a webhook is Base64, with or without whsec_.") from error
    signature = hmac.digest(key, f"{message_id}.{sent_at}.".encode() + body, hashlib.sha256)
    expected = b"v1," + base64.b64encode(signature)
    signatures = given.get("webhook-signature", "").encode().split()
    if not any(hmac.compare_digest(expected, one) for one in signatures):
        raise WebhookVerificationError("No signature of the message is right.")
    try:
        return msgspec.json.decode(body, type=WebhookEvent)
    except msgspec.MsgspecError as error:
        raise WebhookVerificationError("The message is no event.") from error
