"""
A client of Muniment registries.

`Client` and `AsyncClient` have the same methods. Those of the REST API return structs; `companies()`, `people()` and
other plurals iterate over all pages. `owner` has the tools of an account.
"""

from muniment_client._async_client import AsyncClient
from muniment_client._client import Client
from muniment_client._copy import Copy
from muniment_client._wire import Csv, Place, Retries, Rows, Verification
from muniment_client.errors import (
    APIError,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    ConnectionFailedError,
    ForbiddenError,
    HistoryChangedError,
    MalformedResponseError,
    MunimentError,
    NotFoundError,
    RateLimitError,
    ServerError,
    TimedOutError,
    TooLargeError,
    UnavailableError,
)
from muniment_client.webhooks import WebhookEvent, WebhookVerificationError, verify_webhook

__all__ = [
    "APIError",
    "AsyncClient",
    "AuthenticationError",
    "BadRequestError",
    "Client",
    "ConflictError",
    "ConnectionFailedError",
    "Copy",
    "Csv",
    "ForbiddenError",
    "HistoryChangedError",
    "MalformedResponseError",
    "MunimentError",
    "NotFoundError",
    "Place",
    "RateLimitError",
    "Retries",
    "Rows",
    "ServerError",
    "TimedOutError",
    "TooLargeError",
    "UnavailableError",
    "Verification",
    "WebhookEvent",
    "WebhookVerificationError",
    "verify_webhook",
]
__version__ = "0.1.0"
