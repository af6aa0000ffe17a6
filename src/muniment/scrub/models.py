"""
The table of the scrub, so that any process of the instance continues where another one stopped.

One row is the progress of the passes, and one what reads have met, until the next turn takes it over.
"""

from django.db import models


class ScrubState(models.Model):
    """The progress of the scrub, as JSON: :class:`muniment.scrub.progress.Progress`."""

    id = models.SmallIntegerField(primary_key=True)
    progress = models.JSONField()

    def __str__(self) -> str:
        return "the scrub of this instance"
