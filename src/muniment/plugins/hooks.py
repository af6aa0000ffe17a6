"""
The hooks of plugins.

Every argument is passed by name, and a plugin may leave out those that it does not need: so arguments can be added
without breaking plugins.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import pluggy

from muniment.plugins.values import BlobStore, Change, Evaluator, Publication, Refusal, Section

PROJECT: Final = "muniment"
Function = TypeVar("Function", bound=Callable[..., Any])
hook: Final = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as a hook, by the function's name."""
_declared: Final = pluggy.HookspecMarker(PROJECT)


class Hooks:
    """Each hook, with when it is called, what it may return, and what happens when it fails."""

    @_declared
    def validate_change(self, change: Change) -> Iterable[Refusal] | None:
        """
        Refuse a change of a company or a person, on every surface, or return nothing.

        It is called in the transaction of the change, so it must be quick and must not wait for another server. If it
        raises, the change is refused.
        """

    @_declared
    def published(self, publication: Publication) -> None:
        """
        Act after a publication, in a background job after the commit, at least once.

        If it raises, this publication is tried again later; those after it wait for it.
        """

    @_declared
    def evaluators(self) -> Iterable[Evaluator]:  # type: ignore[empty-body]  # declares
        """Return evaluators of reports; ``MUNIMENT_EVALUATOR`` chooses one by its name."""

    @_declared
    def blob_store(self, scheme: str, url: str) -> BlobStore | None:
        """Return the store that a ``MUNIMENT_STORAGE_URL`` of another scheme than s3 names, or None."""

    @_declared
    def page_section(self, kind: str, document: Mapping[str, Any]) -> Section | Iterable[Section] | None:
        """
        Return what the page of a company or a person shows besides.

        The page is kept and is the same for every visitor, so a section may depend on nothing but the published
        *document*. If it raises or takes longer than half a second, the page is shown without it.
        """

    @_declared
    def commands(self) -> Iterable[Any]:  # type: ignore[empty-body]  # declares
        """Return commands of ``muniment``, made with click. They must not have the name of a built-in one."""


NAMES: Final = tuple(name for name in vars(Hooks) if not name.startswith("_"))
