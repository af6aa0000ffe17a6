"""The keys that sign the public log."""

from django.db import models


class LogKey(models.Model):
    """
    A key that signs checkpoints of the log.

    Args:
        sealed: the private key, encrypted under the secret key; empty once it signs no more.
        succession: the note by which the former key names this one; empty for the first, or if that was lost.
        ended_at: when another key took its place.
    """

    public_key = models.BinaryField(max_length=32)
    sealed = models.TextField(blank=True)
    succession = models.TextField(blank=True)
    made_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return bytes(self.public_key).hex()
