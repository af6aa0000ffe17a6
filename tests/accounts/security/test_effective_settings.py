"""Changed settings are in the audit log, and no secret with them."""

import json

import pytest

from muniment import config
from muniment.accounts.keys import kept
from muniment.accounts.models import SecurityEvent
from muniment.accounts.security import effective_settings
from muniment.accounts.security.effective_settings import record_settings
from muniment.accounts.security.events import Event, details_of

pytestmark = pytest.mark.django_db

STAFF = {"key": "staff", "name": "Staff", "issuer": "https://id.example", "client_id": "registry"}


@pytest.fixture
def use(monkeypatch):
    def with_values(**environment):
        made = config.Config({f"MUNIMENT_{name.upper()}": value for name, value in environment.items()})
        monkeypatch.setattr(config, "current", lambda: made)

    return with_values


def recorded():
    return list(SecurityEvent.objects.filter(event=Event.SETTINGS_CHANGED).order_by("pk"))


def test_the_first_start_and_every_change_are_recorded_once(use):
    use(signup="off")
    assert [record_settings(), record_settings()] == [True, False]
    use(signup="on", run_cost="25")
    assert [record_settings(), record_settings()] == [True, False]
    first, second = recorded()
    assert first.detail["changed"] == {"MUNIMENT_SIGNUP": [None, "off"]}
    assert second.detail["changed"] == {"MUNIMENT_RUN_COST": [None, "25"], "MUNIMENT_SIGNUP": ["off", None]}
    assert second.is_audited
    assert ("MUNIMENT_RUN_COST", "default → 25") in details_of(second)


def test_what_differs_between_nodes_is_no_change(use, tmp_path):
    use()
    record_settings()
    use(data=str(tmp_path), cache_mb="64", log_format="text")
    assert not record_settings()


def test_a_secret_is_seen_to_change_and_never_shown(use):
    shown = []
    for password in ("first-password", "second-password"):
        use(
            mail_url=f"smtp://me:{password}@mail.example:587",
            database_url=f"postgresql://me:{password}@database.example/muniment",
            storage_url=f"s3://KEY:{password}@bucket/prefix",
            stripe_secret_key=password,
            stripe_webhook_secret=password,
            model_key=password,
            oidc_providers=json.dumps([{**STAFF, "client_secret": password}]),
            secret_key=password,
        )
        assert record_settings()
        shown.append(str(recorded()[-1].detail))
    assert all("password" not in text for text in shown)
    changed = recorded()[-1].detail["changed"]
    assert len(changed) == 8
    assert all(each.startswith("secret ") for pair in changed.values() for each in pair)


def test_every_text_that_is_shown_is_named(use):
    shown = {
        setting.name
        for setting in config.SETTINGS
        if setting.read is str and not effective_settings._shown(setting.name, "x").startswith("secret")
    }
    assert shown <= effective_settings._SHOWN
    assert not {name for name in shown if "key" in name or "secret" in name or "password" in name}


def test_a_rotation_of_the_secret_key_is_no_change_of_the_settings_that_it_keys(settings, use):
    use(model_key="a secret of the operator")
    assert record_settings()
    former, settings.SECRET_KEY = settings.SECRET_KEY, "the next key of this instance"
    kept.keep(former, settings.SECRET_KEY)
    assert not record_settings()
