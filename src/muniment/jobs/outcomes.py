"""How a job can end other than with a result: outcomes that its handler asks for, or that its worker meets."""


class LeaseLost(Exception):  # noqa: N818 - an outcome, not a fault of the job
    """Another attempt has the job; drop everything."""


class Canceled(Exception):  # noqa: N818 - an outcome, not a fault of the job
    """The job was canceled; the queue ends it."""


class HandedBack(Exception):  # noqa: N818 - an outcome, not a fault of the job
    """The worker is stopping: another one continues from the last step."""


class Postponed(Exception):  # noqa: N818 - an outcome that a handler asks for
    """
    Raised by a handler whose job is to be tried again later, for a known reason: it is not logged as an error.

    Args:
        pause_s: the pause before the next attempt; None for the handler's own.
        is_excused: the attempt does not count, because a service that the job needs is away.
    """

    def __init__(self, reason: str, *, pause_s: float | None = None, is_excused: bool = False) -> None:
        super().__init__(reason)
        self.pause_s, self.is_excused = pause_s, is_excused


class Abandoned(Exception):  # noqa: N818 - an outcome that a handler asks for
    """Raised by a handler whose job can never succeed: it is not retried."""
