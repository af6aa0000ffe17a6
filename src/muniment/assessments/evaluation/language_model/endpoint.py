"""Which model judges, where it is, and how much of it a run may use."""

import importlib.util
from dataclasses import dataclass, field
from typing import Final

INSTALL: Final = 'pip install "muniment[language-model]"'


class ModelUnavailable(Exception):  # noqa: N818 - says what holds; the run's job decides what follows
    """
    The endpoint does not judge. The message names neither key, address nor what was sent.

    Args:
        for_good: asking again later will not help either.
    """

    def __init__(self, message: str, *, for_good: bool = False) -> None:
        super().__init__(message)
        self.for_good = for_good


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    An endpoint, as the settings name it.

    Args:
        url: its base address, which ``/chat/completions`` is added to.
        run_tokens: prompt and answer together, for one run.
        run_seconds: how long one run may ask.
        timeout_s: how long one request may take.
        parallel: requests at once.
    """

    url: str
    name: str
    key: str = field(default="", repr=False)
    run_tokens: int = 500_000
    run_seconds: int = 300
    timeout_s: int = 60
    parallel: int = 4


def lacking() -> str:
    """Say how to install what the evaluator needs, empty when it is there."""
    if importlib.util.find_spec("openai") is not None:
        return ""
    return f"MUNIMENT_MODEL_URL is set, and the extra that asks a model is not installed: {INSTALL}."
