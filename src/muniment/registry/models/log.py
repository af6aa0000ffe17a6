"""The keys that sign the public log, and what witnesses have cosigned."""

from typing import ClassVar

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


class LogWitness(models.Model):
    """
    What is known of a witness.

    Args:
        key: its verifier key.
        origin: the log that it cosigned.
        size: leaves of the latest checkpoint that it has cosigned, as it says.
        cosigned_at: the time in its latest cosignature that was verified.
        trouble: why its latest answer was no cosignature, as a word of :class:`muniment.registry.publishing.witnesses`.
        next_at: when it may be asked again.
    """

    key = models.TextField(unique=True)
    origin = models.TextField(blank=True)
    size = models.BigIntegerField(default=0)
    cosigned_at = models.DateTimeField(null=True)
    trouble = models.TextField(blank=True)
    detail = models.TextField(blank=True)
    failures = models.IntegerField(default=0)
    next_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.key


class CosignedCheckpoint(models.Model):
    """
    A checkpoint that witnesses have cosigned.

    Args:
        signatures: the line and the time of each cosignature, by the verifier key of its witness.
    """

    origin = models.TextField()
    size = models.BigIntegerField()
    root = models.BinaryField(max_length=32)
    signatures = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["origin", "size"], name="cosigned_once")]

    def __str__(self) -> str:
        return f"{self.origin} {self.size}"
