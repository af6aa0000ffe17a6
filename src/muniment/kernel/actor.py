"""Actors: who acts, through which credential, with which scopes."""

from dataclasses import dataclass, field
from typing import Literal

Role = Literal["visitor", "owner", "reviewer", "operator"]
Via = Literal["system", "command", "web", "token", "app"]

SCOPES: tuple[str, ...] = (
    "companies:read",
    "companies:write",
    "profile:read",
    "profile:write",
    "documents:read",
    "documents:write",
    "reports:read",
    "reports:run",
)
ALL_SCOPES = frozenset(SCOPES)


@dataclass(frozen=True, slots=True)
class Actor:
    """
    The account or process on whose behalf an operation runs.

    Args:
        account_id: None for the system and for visitors.
        credential: what the history shows: the name of a token, an app or a command; never a secret.
        scopes: what the credential permits; web pages and the command line hold all scopes.
        confirmed: False for a browser session whose account must confirm its identity before it does what opens or
            gives away the account.
        credential_id: the credential itself, such as ``token 7``: names can be given twice.
    """

    account_id: int | None
    role: Role
    via: Via
    credential: str = ""
    scopes: frozenset[str] = ALL_SCOPES
    confirmed: bool = True
    credential_id: str = ""
    decides: bool = field(init=False, compare=False, repr=False)
    """Whether it acts as a reviewer: on pages or the command line, never through a token or an app."""

    def __post_init__(self) -> None:
        decides = self.is_reviewer and self.via in {"web", "command", "system"}
        # A frozen dataclass allows no assignment, not even in its own __post_init__.
        object.__setattr__(self, "decides", decides)

    @property
    def is_reviewer(self) -> bool:
        """Return whether the actor may approve listings and write frameworks."""
        return self.role in {"reviewer", "operator"}


SYSTEM = Actor(account_id=None, role="operator", via="system", credential="system")
COMMAND = Actor(account_id=None, role="operator", via="command", credential="command line")
VISITOR = Actor(account_id=None, role="visitor", via="web", scopes=frozenset())
