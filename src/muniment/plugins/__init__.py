"""
The interface of plugins: the hooks, and the values that they take and return.

A plugin is a module or an object behind an entry point of the group ``muniment.plugins``. It marks its functions with
:data:`hook`; :mod:`muniment.plugins.hooks` declares each of them. What is exported here stays, and only grows.
"""

from muniment.plugins.hooks import hook
from muniment.plugins.values import (
    API,
    BlobStore,
    Change,
    Evaluator,
    Passage,
    Publication,
    Quote,
    Refusal,
    Section,
    SectionFact,
    StoredBlob,
    Verdict,
)

__all__ = [
    "API",
    "BlobStore",
    "Change",
    "Evaluator",
    "Passage",
    "Publication",
    "Quote",
    "Refusal",
    "Section",
    "SectionFact",
    "StoredBlob",
    "Verdict",
    "hook",
]
