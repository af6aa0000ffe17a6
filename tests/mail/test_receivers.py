"""Mail is in the language of its receiver, not of who causes it."""

import pytest

from make.accounts import account
from make.declared import declared
from muniment.accounts.personal_data.deletion import cancel_deletion, request_deletion
from muniment.languages.speaking import speaking
from muniment.mail.receivers import in_language_at
from muniment.web.translating import gettext

pytestmark = pytest.mark.django_db
