"""The tables of the first set-up."""

from django.db import models

from muniment.kernel.ids import now


class SetupLink(models.Model):
    """
    The one link that sets up an instance without an operator; only digests are stored.

    Args:
        node: the data folder, on its host, of the process that made it.
        opened_by: the digest of the secret of the browser that opened it; empty until then.
    """

    digest = models.CharField(max_length=64)
    node = models.CharField(max_length=300, blank=True, default="")
    made_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    opened_by = models.CharField(max_length=64, blank=True, default="")

    def __str__(self) -> str:
        return f"until {self.expires_at:%Y-%m-%d %H:%M}"


class SetupStep(models.Model):
    """A step of the first set-up that an operator has taken or left out."""

    name = models.CharField(max_length=20, primary_key=True)
    is_skipped = models.BooleanField(default=False)
    at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return f"{self.name} {'skipped' if self.is_skipped else 'saved'}"
