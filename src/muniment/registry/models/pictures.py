"""Stored logos and portraits."""

from django.db import models

from muniment.kernel.ids import now


class Picture(models.Model):
    """A logo or portrait in two sizes. Stored in the database, so that every node can serve it."""

    digest = models.CharField(max_length=32, unique=True)
    small = models.BinaryField()
    large = models.BinaryField()
    made_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return str(self.digest)
