"""Mail is in the language of its receiver, not of who causes it."""

import pytest

pytestmark = pytest.mark.django_db
