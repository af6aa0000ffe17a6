"""
Read-only admin pages of the registry: find, filter, read.

Nothing is edited here: rules, history and publishing are in the operations, and a row edited directly would be
published inconsistently. Each page links to the page that edits it.
"""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from muniment.accounts.read_only_admin import ReadOnly
from muniment.registry.models import (
    CapTableEntry,
    Company,
    Framework,
    FrameworkSpecification,
    FundingRound,
    GivenSlug,
    HistoryEntry,
    Invitation,
    Ownership,
    PendingChange,
    Person,
    Petition,
    Picture,
    Position,
    Proposal,
    Taking,
)


@admin.register(Company)
class CompanyAdmin(ReadOnly):
    """Listings in every state."""

    list_display = ("name", "slug", "state", "type", "industry", "listed_on", "updated_at", "to_edit")
    list_filter = ("state", "status", "published", "listed_on")
    search_fields = ("name", "slug", "symbol", "website")
    ordering = ("-updated_at",)

    @admin.display(description="")
    def to_edit(self, company: Company) -> SafeString:
        return format_html('<a href="/review/companies/{}">Review or edit</a>', company.slug)


@admin.register(Person)
class PersonAdmin(ReadOnly):
    """People, with or without an account."""

    list_display = ("name", "slug", "account", "listed", "published", "updated_at")
    list_filter = ("listed", "published", ("account", admin.EmptyFieldListFilter))
    search_fields = ("name", "slug", "account__email")
    list_select_related = ("account",)
    ordering = ("-updated_at",)


@admin.register(Framework)
class FrameworkAdmin(ReadOnly):
    """Frameworks and programs."""

    list_display = ("name", "slug", "kind", "company", "closed", "listed", "run_cost", "to_edit")
    list_filter = ("kind", "closed", "listed")
    search_fields = ("name", "slug", "company__name")
    list_select_related = ("company",)

    @admin.display(description="")
    def to_edit(self, framework: Framework) -> SafeString:
        return format_html('<a href="/review/frameworks/{}">Edit</a>', framework.slug)


@admin.register(HistoryEntry)
class HistoryAdmin(ReadOnly):
    """The history of changes."""

    list_display = ("at", "action", "company", "person", "framework", "account", "via", "credential")
    list_filter = ("action", "via", "at")
    search_fields = (
        "company__name",
        "company__slug",
        "person__name",
        "framework__name",
        "account__email",
        "credential",
    )
    list_select_related = ("company", "person", "framework", "account")
    date_hierarchy = "at"
    ordering = ("-at",)


@admin.register(PendingChange)
class PendingChangeAdmin(ReadOnly):
    """Changes that needed review, and their decisions."""

    list_display = ("company", "account", "asked_at", "decision", "decided_by", "decided_at")
    list_filter = ("decision", "asked_at")
    search_fields = ("company__name", "company__slug", "account__email")
    list_select_related = ("company", "account", "decided_by")


@admin.register(Petition)
class PetitionAdmin(ReadOnly):
    """Claims and suggestions, and their decisions."""

    list_display = ("kind", "company", "person", "account", "asked_at", "decision", "decided_by")
    list_filter = ("kind", "decision", "asked_at")
    search_fields = ("company__name", "person__name", "account__email", "text")
    list_select_related = ("company", "person", "account", "decided_by")


@admin.register(Ownership)
class OwnershipAdmin(ReadOnly):
    """Owners of listings."""

    list_display = ("company", "account", "role", "since")
    list_filter = ("role", "since")
    search_fields = ("company__name", "company__slug", "account__email")
    list_select_related = ("company", "account")


@admin.register(Invitation)
class InvitationAdmin(ReadOnly):
    """Invitations, without their secret links."""

    list_display = ("company", "email", "invited_by", "invited_at", "accepted_at")
    list_filter = ("invited_at", ("accepted_at", admin.EmptyFieldListFilter))
    search_fields = ("company__name", "email")
    list_select_related = ("company", "invited_by")
    exclude = ("token_digest",)


@admin.register(FrameworkSpecification)
class SpecificationAdmin(ReadOnly):
    """Versions of private specifications."""

    list_display = ("framework", "version", "author", "authored_at")
    list_filter = ("authored_at",)
    search_fields = ("framework__name", "framework__slug")
    list_select_related = ("framework", "author")


@admin.register(FundingRound)
class FundingRoundAdmin(ReadOnly):
    """Funding rounds, open and closed."""

    list_display = ("company", "name", "target_minor", "opened_on", "closed_on")
    list_filter = (("closed_on", admin.EmptyFieldListFilter), "opened_on")
    search_fields = ("company__name", "name")
    list_select_related = ("company",)


@admin.register(Position)
class PositionAdmin(ReadOnly):
    """Positions of people in companies."""

    list_display = ("person", "title", "company", "rank")
    search_fields = ("person__name", "company__name", "title")
    list_select_related = ("person", "company")


@admin.register(Proposal, CapTableEntry)
class PartAdmin(ReadOnly):
    """Parts of a listing that are stored in published form."""

    list_display = ("company", "rank", "document")
    search_fields = ("company__name", "company__slug")
    list_select_related = ("company",)


@admin.register(Taking)
class TakingAdmin(ReadOnly):
    """Review items assigned to reviewers."""

    list_display = ("subject", "account", "at")
    list_filter = ("at",)
    search_fields = ("subject", "account__email")
    list_select_related = ("account",)


@admin.register(GivenSlug)
class GivenSlugAdmin(ReadOnly):
    """Every slug ever used."""

    list_display = ("kind", "slug")
    list_filter = ("kind",)
    search_fields = ("slug",)


@admin.register(Picture)
class PictureAdmin(ReadOnly):
    """Stored pictures."""

    list_display = ("digest", "made_at", "seen")
    list_filter = ("made_at",)
    search_fields = ("digest",)
    exclude = ("small", "large")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("small", "large")

    @admin.display(description="")
    def seen(self, picture: Picture) -> SafeString:
        return format_html('<img src="/pictures/{}-144.webp" alt="" width="36" height="36">', picture.digest)
