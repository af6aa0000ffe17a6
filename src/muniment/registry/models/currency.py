"""The currency of an instance's amounts."""

from django.db import models


class InstanceCurrency(models.Model):
    """The one row says in which currency the stored amounts are: they are numbers, and say nothing of it."""

    code = models.CharField(max_length=3, primary_key=True)

    def __str__(self) -> str:
        return self.code
