"""`muniment doctor` and `muniment openapi`."""

import json

from muniment.config import SETTINGS
from services.product import run


def test_a_healthy_instance_is_told_so_with_every_setting(demo):
    told = run("doctor", data=demo.data, secret_key="very-secret-value", rate_limit="300").stdout
    for setting in SETTINGS:
        assert f"{setting.variable} = " in told
        assert setting.help in told
    assert "very-secret-value" not in told
    assert "MUNIMENT_RATE_LIMIT = 300  [default: 600]" in told
    assert "MEND" not in told
    assert "60 company" in told


def test_an_instance_that_is_not_there_yet_is_left_alone(tmp_path):
    told = run("doctor", data=tmp_path / "data").stdout
    assert "the first start makes it" in told
    assert not (tmp_path / "data").exists()


def test_what_needs_mending_is_told_with_status_1(tmp_path):
    data = tmp_path / "data"
    (data / "keys").mkdir(parents=True)
    (data / "keys" / "django.key").write_text("x" * 50)
    (data / "keys" / "django.key").chmod(0o644)
    (data / "muniment.sqlite3").touch()
    done = run("doctor", data=data, check=False)
    assert done.returncode == 1
    assert "chmod 600" in done.stdout
    assert "migrations are missing" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_database_that_does_not_answer_is_told_without_its_password(tmp_path):
    url = "postgresql://someone:hidden-word@127.0.0.1:9/none"
    done = run("doctor", data=tmp_path / "data", check=False, database_url=url)
    assert done.returncode == 1
    assert "does not answer" in done.stdout
    assert "hidden-word" not in done.stdout + done.stderr


def test_the_contract_is_printed_as_it_is_served(demo):
    printed = json.loads(run("openapi", data=demo.data, base_url=demo.url).stdout)
    assert printed == demo.get("/openapi.json").json()
