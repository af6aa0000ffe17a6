"""The operator's pages of declared fields."""

import pytest
from django.conf import settings as django_settings

from make.accounts import account, signed_in
from make.registry import owner, published
from muniment import config
from muniment.accounts.models import SecurityEvent
from muniment.config import Config
from muniment.jobs.models import Job
from muniment.kernel.actor import COMMAND
from muniment.registry.declared import progress
from muniment.registry.models import Company, RegistryVersion
from muniment.registry.settings.operations import apply_settings, latest_version
from muniment.registry_toml.document import RegistrySettings
from muniment.schema.objects import registry_schema
from muniment.searches.operations import save_search
from services.queued import run_jobs

pytestmark = pytest.mark.django_db
HOME = "/operate/fields"
BERTHS = {"key": "berths", "label": "Berths", "kind": "number", "min": 0}
