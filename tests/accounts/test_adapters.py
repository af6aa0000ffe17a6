"""The list of common passwords is read only when a password is checked."""

import pytest
from django.core.exceptions import ValidationError

from muniment.accounts.adapters import CommonPasswordValidator


def test_a_common_password_is_rejected_and_the_list_is_not_kept():
    validator = CommonPasswordValidator()
    with pytest.raises(ValidationError, match="too common"):
        validator.validate("Password123")
    validator.validate("a sentence that nobody else has chosen")
    assert not hasattr(validator, "passwords")
