"""The configured language model and its limits."""

import importlib.util
from dataclasses import dataclass, field
from typing import Final

INSTALL: Final = 'pip install "muniment[language-model]"'


class ModelUnavailable(Exception):  # noqa: N818 - names the condition
    """
    The endpoint does not judge; *for_good* means that a retry will not help.

    The message contains neither the key, the address nor what was sent.
    """

    def __init__(self, message: str, *, for_good: bool = False) -> None:
        super().__init__(message)
        self.for_good = for_good


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    An endpoint, as configured.

    Args:
        url: its base URL, to which ``/chat/completions`` is appended.
        run_tokens: the limit of prompt and answer tokens per run.
        run_seconds: the time limit of the model in one run; rules evaluate the rest, so that a report comes in minutes.
        timeout_s: the time limit of one request.
        parallel: the number of concurrent requests of a run: few enough for the quota of a small account.
    """

    url: str
    name: str
    key: str = field(default="", repr=False)
    run_tokens: int = 500_000
    run_seconds: int = 300
    timeout_s: int = 60
    parallel: int = 4


def lacking() -> str:
    """Return how to install the evaluator's missing dependency; empty when it is installed."""
    if importlib.util.find_spec("openai") is not None:
        return ""
    return f"MUNIMENT_MODEL_URL is set, but the language-model extra is not installed: {INSTALL}."
