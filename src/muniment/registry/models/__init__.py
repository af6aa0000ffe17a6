"""
The tables of the registry.

An empty text means absent where the contract omits the field; NULL is used where an empty text and an absent one
differ on the wire. Open objects keep additional members in ``extra``.
Only :mod:`muniment.registry.publishing.publisher` sets ``publication_number`` and ``published``.
"""

from muniment.registry.models.company import (
    CapTableEntry,
    Company,
    FetchedLogo,
    FundingRound,
    Ownership,
    Picture,
    Position,
    PositionRequest,
    Proposal,
    RemovedItem,
    State,
)
from muniment.registry.models.framework import Framework, FrameworkSpecification, Score, SpecificationDraft
from muniment.registry.models.history import (
    HistoryEntry,
    ImportedRows,
    ImportFile,
    ImportMemory,
    ImportRun,
    ImportUpload,
)
from muniment.registry.models.log import CosignedCheckpoint, LogKey, LogWitness
from muniment.registry.models.people import (
    FeedTombstone,
    GivenSlug,
    MergedPerson,
    Person,
    Suppression,
    UnlistedBy,
    WaitingPerson,
)
from muniment.registry.models.review import (
    AccountInvitation,
    DomainProof,
    Invitation,
    ItemChecks,
    PendingChange,
    Petition,
    ReviewerSettings,
    SavedReply,
    Taking,
)
from muniment.registry.settings.tables import BrandFont, InstanceCurrency, RegistryVersion

__all__ = [
    "AccountInvitation",
    "BrandFont",
    "CapTableEntry",
    "Company",
    "CosignedCheckpoint",
    "DomainProof",
    "FeedTombstone",
    "FetchedLogo",
    "Framework",
    "FrameworkSpecification",
    "FundingRound",
    "GivenSlug",
    "HistoryEntry",
    "ImportFile",
    "ImportMemory",
    "ImportRun",
    "ImportUpload",
    "ImportedRows",
    "InstanceCurrency",
    "Invitation",
    "ItemChecks",
    "LogKey",
    "LogWitness",
    "MergedPerson",
    "Ownership",
    "PendingChange",
    "Person",
    "Petition",
    "Picture",
    "Position",
    "PositionRequest",
    "Proposal",
    "RegistryVersion",
    "RemovedItem",
    "ReviewerSettings",
    "SavedReply",
    "Score",
    "SpecificationDraft",
    "State",
    "Suppression",
    "Taking",
    "UnlistedBy",
    "WaitingPerson",
]
