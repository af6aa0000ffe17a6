"""Password validation: Django's list of common passwords, read only when a password is set."""

from typing import Any

from django.contrib.auth import password_validation


class CommonPasswordValidator(password_validation.CommonPasswordValidator):
    """Django's validator without its list of 20,000 passwords, which would take 1.7 MB of every process."""

    def __init__(self) -> None:
        """Read nothing yet."""

    def validate(self, password: str, user: Any = None) -> None:
        """Read the list, about 10 ms, and raise ValidationError if *password* is in it."""
        password_validation.CommonPasswordValidator().validate(password, user)
