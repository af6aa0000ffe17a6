"""Apps, connections and codes in the operators' admin site, read-only."""

from django.contrib import admin

from muniment.accounts.read_only_admin import ReadOnly
from muniment.oauth.models import AuthorizationCode, Client, Grant


@admin.register(Client)
class ClientAdmin(ReadOnly):
    """Apps that requested access."""

    list_display = ("name", "identifier", "kind", "created_at", "fetched_at")
    list_filter = ("kind", "created_at")
    search_fields = ("name", "identifier")


@admin.register(Grant)
class GrantAdmin(ReadOnly):
    """Connections of apps to accounts, without the digests of their tokens."""

    list_display = ("client", "account", "scopes", "created_at", "last_used_on", "revoked_at")
    list_filter = ("created_at", ("revoked_at", admin.EmptyFieldListFilter), "revoked_because")
    search_fields = ("client__name", "client__identifier", "account__email")
    exclude = ("access_digest", "refresh_digest", "replaced_access_digest", "replaced_refresh_digest")


@admin.register(AuthorizationCode)
class AuthorizationCodeAdmin(ReadOnly):
    """Authorization codes."""

    list_display = ("client", "account", "scopes", "expires_at", "grant")
    list_filter = ("expires_at",)
    search_fields = ("client__name", "account__email")
    exclude = ("digest", "challenge")
