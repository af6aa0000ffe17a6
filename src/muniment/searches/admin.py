"""Saved searches in the operators' admin site, read-only."""

from django.contrib import admin

from muniment.accounts.read_only_admin import ReadOnly
from muniment.searches.models import SavedSearch


@admin.register(SavedSearch)
class SavedSearchAdmin(ReadOnly):
    """Searches that accounts have saved."""

    list_display = ("name", "account", "list", "query", "saved_at")
    list_filter = ("list", "saved_at")
    search_fields = ("name", "query", "account__email")
