"""The two sides that can unlist a listing or a profile."""

from django.db import models


class UnlistedBy(models.TextChoices):
    """
    Who unlisted a listing or a profile: an owner (of a profile, the person), or a reviewer.

    An owner publishes again only what an owner unlisted.

    Source: decisions, section 5, listings.
    """

    OWNER = "owner"
    REVIEWER = "reviewer"
