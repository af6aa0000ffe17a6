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
from muniment.registry import models


@admin.register(models.Company)
class CompanyAdmin(ReadOnly):
    """Listings in every state."""

    list_display = ("name", "slug", "state", "type", "industry", "listed_on", "updated_at", "to_edit")
    list_filter = ("state", "status", "published", "listed_on")
    search_fields = ("name", "slug", "symbol", "website")
    ordering = ("-updated_at",)

    @admin.display(description="")
    def to_edit(self, company: models.Company) -> SafeString:
        return format_html('<a href="/review/companies/{}">Review or edit</a>', company.slug)


@admin.register(models.Framework)
class FrameworkAdmin(ReadOnly):
    """Frameworks and programs."""

    list_display = ("name", "slug", "kind", "company", "closed", "listed", "run_cost", "to_edit")
    list_filter = ("kind", "closed", "listed")
    search_fields = ("name", "slug", "company__name")

    @admin.display(description="")
    def to_edit(self, framework: models.Framework) -> SafeString:
        return format_html('<a href="/review/frameworks/{}">Edit</a>', framework.slug)


@admin.register(models.Picture)
class PictureAdmin(ReadOnly):
    """Stored pictures."""

    list_display = ("digest", "made_at", "seen")
    list_filter = ("made_at",)
    search_fields = ("digest",)
    exclude = ("small", "large")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("small", "large")

    @admin.display(description="")
    def seen(self, picture: models.Picture) -> SafeString:
        return format_html('<img src="/pictures/{}-144.webp" alt="" width="36" height="36">', picture.digest)


admin.site.register(
    models.Person,
    ReadOnly,
    list_display=("name", "slug", "account", "listed", "published", "updated_at"),
    list_filter=("listed", "published", ("account", admin.EmptyFieldListFilter)),
    search_fields=("name", "slug", "account__email"),
    ordering=("-updated_at",),
)


@admin.register(models.FetchedLogo)
class FetchedLogoAdmin(ReadOnly):
    """What came of fetching logos."""

    list_display = ("company", "source", "fault", "failures", "asked_at", "retry_at")
    list_filter = ("asked_at",)
    search_fields = ("company__name", "company__slug", "source", "fault")


@admin.register(models.Score)
class ScoreAdmin(ReadOnly):
    """Published scores."""

    list_display = ("company", "framework", "score", "grade", "assessed_at", "published_at", "account")
    list_filter = ("framework", "published_at")
    search_fields = ("company__name", "company__slug", "framework__name")


@admin.register(models.HistoryEntry)
class HistoryAdmin(ReadOnly):
    """The history of listings, people and frameworks."""

    list_display = ("at", "action", "company", "person", "framework", "account", "via", "credential")
    list_filter = ("action", "via", "at")
    search_fields = (
        *("company__name", "company__slug", "person__name", "framework__name", "account__email", "credential"),
    )
    date_hierarchy = "at"
    ordering = ("-at",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("before", "after", "parts")


admin.site.register(
    models.PendingChange,
    ReadOnly,
    list_display=("company", "account", "asked_at", "decision", "decided_by", "decided_at"),
    list_filter=("decision", "asked_at"),
    search_fields=("company__name", "company__slug", "account__email"),
)
admin.site.register(
    models.PositionRequest,
    ReadOnly,
    list_display=("company", "person", "title", "account", "asked_at", "decision", "decided_at"),
    list_filter=("decision", "asked_at"),
    search_fields=("company__name", "company__slug", "person__name", "person__slug", "account__email"),
)
admin.site.register(
    models.Petition,
    ReadOnly,
    list_display=("kind", "company", "person", "account", "asked_at", "decision", "decided_by"),
    list_filter=("kind", "decision", "asked_at"),
    search_fields=("company__name", "person__name", "account__email", "text"),
)
admin.site.register(
    models.ItemChecks,
    ReadOnly,
    list_display=("subject", "attention", "at"),
    list_filter=("at",),
    search_fields=("subject", "attention"),
)
admin.site.register(
    models.SavedReply,
    ReadOnly,
    list_display=("title", "account", "updated_at"),
    list_filter=("updated_at",),
    search_fields=("title", "text", "account__email"),
)
admin.site.register(
    models.ReviewerSettings,
    ReadOnly,
    list_display=("account", "digest", "shortcuts", "digest_at"),
    list_filter=("digest", "shortcuts"),
    search_fields=("account__email",),
)
admin.site.register(
    models.Ownership,
    ReadOnly,
    list_display=("company", "account", "role", "since"),
    list_filter=("role", "since"),
    search_fields=("company__name", "company__slug", "account__email"),
)
admin.site.register(
    models.Invitation,
    ReadOnly,
    list_display=("company", "email", "invited_by", "invited_at", "accepted_at"),
    list_filter=("invited_at", ("accepted_at", admin.EmptyFieldListFilter)),
    search_fields=("company__name", "email"),
    exclude=("token_digest",),  # never shown: the link is a secret
)
admin.site.register(
    models.FrameworkSpecification,
    ReadOnly,
    list_display=("framework", "version", "author", "authored_at"),
    list_filter=("authored_at",),
    search_fields=("framework__name", "framework__slug"),
)
admin.site.register(
    models.SpecificationDraft,
    ReadOnly,
    list_display=("framework", "account", "version", "changed_at"),
    list_filter=("changed_at",),
    search_fields=("framework__name", "framework__slug", "account__email"),
)
admin.site.register(
    models.FundingRound,
    ReadOnly,
    list_display=("company", "name", "target_minor", "opened_on", "closed_on"),
    list_filter=(("closed_on", admin.EmptyFieldListFilter), "opened_on"),
    search_fields=("company__name", "name"),
)
admin.site.register(
    models.Position,
    ReadOnly,
    list_display=("person", "title", "company", "rank"),
    search_fields=("person__name", "company__name", "title"),
)
admin.site.register(
    (models.Proposal, models.CapTableEntry),
    ReadOnly,
    list_display=("company", "rank", "document"),
    search_fields=("company__name", "company__slug"),
)
admin.site.register(
    models.DomainProof,
    ReadOnly,
    list_display=("domain", "method", "company", "account", "state", "verified_at", "due_at"),
    list_filter=("state", "method"),
    search_fields=("domain", "company__name", "company__slug", "account__email"),
    exclude=("code_digest",),  # never shown: the code is a secret
)
admin.site.register(
    models.Taking,
    ReadOnly,
    list_display=("subject", "account", "at"),
    list_filter=("at",),
    search_fields=("subject", "account__email"),
)
admin.site.register(models.Suppression, ReadOnly, list_display=("digest", "at"), search_fields=("digest",))
admin.site.register(
    models.FeedTombstone, ReadOnly, list_display=("sequence", "replacement", "due_at"), search_fields=("replacement",)
)
admin.site.register(
    models.MergedPerson, ReadOnly, list_display=("slug", "person"), search_fields=("slug", "person__name")
)
admin.site.register(
    models.RemovedItem, ReadOnly, list_display=("company", "item"), search_fields=("company__slug", "item")
)
admin.site.register(
    models.GivenSlug, ReadOnly, list_display=("kind", "slug"), list_filter=("kind",), search_fields=("slug",)
)
admin.site.register(
    models.ImportRun,
    ReadOnly,
    list_display=("started_at", "files", "via", "account", "result", "undoes"),
    list_filter=("via",),
    search_fields=("files", "account__email"),
    ordering=("-pk",),
)
admin.site.register(
    models.ImportUpload,
    ReadOnly,
    list_display=("created_at", "name", "account", "state", "error"),
    list_filter=("state",),
    search_fields=("name", "account__email"),
    ordering=("-pk",),
)
admin.site.register(
    models.ImportFile, ReadOnly, list_display=("upload", "kind"), search_fields=("upload__name",), exclude=("content",)
)
admin.site.register(models.InstanceCurrency, ReadOnly, list_display=("code",), search_fields=("code",))
admin.site.register(
    models.ImportMemory,
    ReadOnly,
    list_display=("company", "person", "framework"),
    search_fields=("company__slug", "person__slug", "framework__slug"),
)
admin.site.register(
    models.RegistryVersion,
    ReadOnly,
    list_display=("number", "at", "account", "via", "note"),
    list_filter=("via",),
    search_fields=("note", "account__email"),
    ordering=("-number",),
)
admin.site.register(
    models.AccountInvitation,
    ReadOnly,
    list_display=("email", "role", "company", "invited_by", "invited_at", "expires_at", "accepted_at", "revoked_at"),
    search_fields=("email", "company__slug", "invited_by__email"),
    exclude=("token_digest",),
)
admin.site.register(
    models.BrandFont, ReadOnly, list_display=("digest", "made_at"), search_fields=("digest",), exclude=("content",)
)
