"""The table of the scrub: one row, so that any process of the instance continues where another one stopped."""

from django.db import models


class ScrubState(models.Model):
    """The progress of the scrub, as JSON: :class:`muniment.scrub.progress.Progress`."""

    id = models.SmallIntegerField(primary_key=True)
    progress = models.JSONField()

    def __str__(self) -> str:
        return "the scrub of this instance"
