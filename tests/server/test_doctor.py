"""`muniment doctor` and `muniment openapi`."""

import contextlib
import json
import re
import sqlite3

import pytest

from muniment.config import SETTINGS, Config, ConfigError
from muniment.jobs.queue import KILLED
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.phrases.storing import stored_text
from services.mail import Mailbox
from services.prepared import new_instance
from services.product import Product, run


def test_doctor_passes_on_a_healthy_instance_and_lists_every_setting(demo):
    told = run("doctor", data=demo.data, model_key="very-secret-value", rate_limit="300").stdout
    for setting in SETTINGS:
        assert f"{setting.variable} = " in told
        assert setting.help in told
    assert "very-secret-value" not in told
    assert "MUNIMENT_RATE_LIMIT = 300  [environment; default: 600]" in told
    assert "MUNIMENT_REVIEW_DIGEST_HOURS = 24  [default]" in told
    assert "FAIL" not in told
    assert "companies 60, people" in told
    assert "OK    secret key: " in told
    wrong = run("doctor", data=demo.data, secret_key="very-secret-value", check=False)
    assert (wrong.returncode, "is used by the database and missing here" in wrong.stdout) == (1, True)


def test_doctor_tells_pages_what_is_not_set_up(tmp_path):
    # An instance that nothing serves: the demo of a long run has made the backup of its first quarter of an hour.
    told = run("doctor", "--json", data=new_instance(tmp_path / "data"), rate_limit="off").stdout
    states = {each["what"]: (each["mark"], each["state"]) for each in json.loads(told)}
    assert states["mail"] == ("OK", "not set up")
    assert states["backups"] == ("OK", "none yet")
    assert states["limits by address"] == states["limits by account"] == ("OK", "partly off")
    assert states["language model"] == ("OK", "off")
    assert states["database"] == ("OK", "")


def test_doctor_says_which_setting_to_change_when_the_proxy_sends_another_header(tmp_path):
    data = new_instance(tmp_path / "data")
    with Product(data, "--workers", "1", trusted_proxies="127.0.0.1") as product:
        product.get("/api/v1/stats", X_Forwarded_For="198.51.100.1")
        assert "WARN  proxies" not in run("doctor", data=data, trusted_proxies="127.0.0.1").stdout
        for number in range(3):
            product.get("/api/v1/stats", Forwarded=f"for=198.51.100.{number}")
        assert product.output().count("set MUNIMENT_FORWARDED_HEADER=Forwarded") == 1
    told = run("doctor", data=data, trusted_proxies="127.0.0.1").stdout
    assert "WARN  proxies: the proxy 127.0.0.1 sends Forwarded without X-Forwarded-For" in told
    told = run("doctor", data=data, trusted_proxies="127.0.0.1", forwarded_header="forwarded").stdout
    assert "OK    proxies: 127.0.0.1/32 name clients in Forwarded" in told


def test_doctor_shows_the_limits_of_an_address_and_of_an_account(tmp_path):
    told = run("doctor", data=tmp_path / "data", database_url="").stdout
    by_address, by_account = re.findall(r"^OK    limits by \w+: (.*)$", told, re.MULTILINE)
    for limit in (
        "600 requests a minute, 100 at once",
        "256 connections, 50 new ones a second",
        "bodies within 30 s",
        "20 client",
        "2 s a minute of drawing cards, 10 s at once",
    ):
        assert limit in by_address
    for limit in (
        "60 changes a minute, 120 at once",
        "128 KB of changes a minute, 3.5 MB at once",
        "2 s of CPU a minute, 10 s at once",
        "600 tool calls a minute",
        "20 drafts",
        "50 unexecuted runs",
    ):
        assert limit in by_account
    off = {"rate_limit": "off", "account_writes": "off", "account_cpu_ms": "off"}
    told = run("doctor", data=tmp_path / "data", database_url="", **off).stdout
    assert "limits by address: requests off;" in told
    assert "cards off" in told
    assert "limits by account: changes off; bytes of changes off; CPU time off; tool calls off;" in told


def test_an_instance_that_is_not_there_yet_is_left_alone(tmp_path):
    told = run("doctor", data=tmp_path / "data", database_url="").stdout
    assert "the first start creates it" in told
    assert not (tmp_path / "data").exists()


def test_an_empty_database_is_no_error_and_comes_with_a_hint(tmp_path, postgres):
    told = run("doctor", "--ledger", "--storage", data=tmp_path / "data", database_url=postgres.create("new")).stdout
    assert "OK    database: PostgreSQL, no migrations applied yet; run muniment migrate, or serve" in told
    assert "FAIL" not in told


@pytest.mark.sqlite  # it looks at a file that lacks most tables
def test_doctor_exits_with_1_when_a_check_fails(tmp_path):
    data = tmp_path / "data"
    (data / "keys").mkdir(parents=True)
    (data / "keys" / "django.key").write_text("x" * 50)
    (data / "keys" / "django.key").chmod(0o644)
    with contextlib.closing(sqlite3.connect(data / "muniment.sqlite3")) as database:
        database.execute("CREATE TABLE django_migrations (id INTEGER PRIMARY KEY, app, name, applied)")
        database.execute("INSERT INTO django_migrations VALUES (1, 'contenttypes', '0001_initial', '2026-01-01')")
        database.commit()
    done = run("doctor", data=data, check=False)
    assert done.returncode == 1
    assert "chmod 600" in done.stdout
    assert "migrations are pending" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_database_that_does_not_answer_is_reported_without_its_password(tmp_path):
    url = "postgresql://someone:hidden-word@127.0.0.1:9/none"
    done = run("doctor", data=tmp_path / "data", check=False, database_url=url)
    assert done.returncode == 1
    assert "does not answer" in done.stdout
    assert "hidden-word" not in done.stdout + done.stderr


def test_doctor_names_what_billing_lacks_and_shows_no_key(tmp_path):
    data = new_instance(tmp_path / "data")
    assert "buying credits: off; operators grant them" in run("doctor", data=data).stdout
    given = {"stripe_secret_key": "sk_live_harbour", "credit_packs": "500=4000,100=900", "model_key": "harbour-model"}
    done = run("doctor", data=data, check=False, **given)
    assert done.returncode == 1
    assert "FAIL  buying credits: off, missing MUNIMENT_STRIPE_WEBHOOK_SECRET;" in done.stdout
    assert "MUNIMENT_CREDIT_PACKS = 500=4000 100=900  [environment; default: (empty)]" in done.stdout
    told = run("doctor", data=data, stripe_webhook_secret="whsec_harbour", base_url="https://r.example", **given).stdout
    assert "Stripe in live mode, 2 packs; webhook https://r.example/billing/stripe/webhook" in told
    for secret in ("sk_live_harbour", "whsec_harbour", "harbour-model"):
        assert secret not in done.stdout + told


def test_the_contract_is_printed_as_it_is_served(demo):
    printed = json.loads(run("openapi", data=demo.data, base_url=demo.url).stdout)
    assert printed == demo.get("/openapi.json").json()


def test_an_unreachable_or_unknown_database_is_reported_with_a_hint(tmp_path):
    url = "postgresql://keeper:sesame@127.0.0.1:1/muniment"
    away = run("user", "list", data=tmp_path / "data", check=False, database_url=url)
    assert (away.returncode, "Traceback" in away.stderr) == (1, False)
    assert "Nothing was changed. Run muniment doctor" in away.stderr
    with pytest.raises(ConfigError, match="MUNIMENT_DATABASE_URL must be postgresql://") as refused:
        Config({"MUNIMENT_DATABASE_URL": "mysql://keeper:sesame@localhost/muniment"})
    assert "sesame" not in str(refused.value) + away.stderr


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("MUNIMENT_CLAMD", "scanner.example", "must be host:port, or a socket path"),
        ("MUNIMENT_CLAMD", "scanner.example:70000", "must be host:port, or a socket path"),
        ("MUNIMENT_DNS_SERVERS", "dns.example", "must be addresses such as 192.0.2.53"),
        ("MUNIMENT_DNS_SERVERS", "192.0.2.53:0", "must be addresses such as 192.0.2.53"),
        ("MUNIMENT_DNS_SERVERS", "192.0.2.53 2001::db8::1", "'2001::db8::1' does not appear to be"),
        ("MUNIMENT_LOG_FORMAT", "jason", "must be json or text"),
        # A column of costs has room for 31 bits, and no clock waits for longer than that many seconds.
        ("MUNIMENT_RUN_COST", "2147483648", "must be a whole number up to 2,147,483,647"),
        ("MUNIMENT_MODEL_TIMEOUT_S", "99999999999", "must be a whole number up to 2,147,483,647"),
        ("MUNIMENT_MODEL_TIMEOUT_S", "0", "must be a whole number from 1 to 2,147,483,647"),
        ("MUNIMENT_RATE_LIMIT", "none", "must be a whole number up to 2,147,483,647, or off"),
    ],
)
def test_a_value_that_would_only_fail_later_is_refused_at_the_start(variable, value, told):
    with pytest.raises(ConfigError, match=f"{variable} {told}"):
        Config({variable: value})


def test_name_servers_have_a_port_of_their_own_or_that_of_dns():
    config = Config({"MUNIMENT_DNS_SERVERS": "192.0.2.53 192.0.2.54:5353, 2001:db8::53 [2001:db8::54]:54"})
    told = [str(each) for each in config.dns_servers]
    assert told == ["192.0.2.53:53", "192.0.2.54:5353", "[2001:db8::53]:53", "[2001:db8::54]:54"]


def test_no_setting_accepts_a_number_that_its_column_cannot_hold():
    whole = [each for each in SETTINGS if isinstance(each.read(each.default), int) and each.default.isdecimal()]
    assert {"run_cost", "starting_credits", "rate_limit", "model_timeout_s"} <= {each.name for each in whole}
    for each in whole:
        assert getattr(Config({each.variable: str(2**31 - 1)}), each.name) == 2**31 - 1
        with pytest.raises(ConfigError, match=f"{each.variable} must be a whole number"):
            Config({each.variable: str(2**31)})


def test_doctor_tries_the_mail_server_and_counts_the_messages_that_wait(demo):
    with Mailbox() as box:
        found = run("doctor", data=demo.data, mail_url=box.url.replace("//", "//who:s3cr3tword@"), check=False)
        assert "FAIL  mail" in found.stdout, "the server takes no password"
        assert "s3cr3tword" not in found.stdout
        found = run("doctor", data=demo.data, mail_url=box.url)
    assert "OK    mail" in found.stdout
    assert "messages wait" in found.stdout
    found = run("doctor", data=demo.data, mail_url="smtp://127.0.0.1:1", check=False)
    assert found.returncode == 1
    assert "does not answer" in found.stdout


def test_doctor_names_the_jobs_that_were_given_up_because_their_process_ended(tmp_path):
    data = new_instance(tmp_path / "data")
    assert "OK    background jobs: none has ended its process" in run("doctor", data=data).stdout
    reason = stored_text(Phrase(KILLED, times=2))
    with contextlib.closing(sqlite3.connect(data / "muniment.sqlite3")) as database:
        for number, error in enumerate((reason, reason, "ValueError: no")):
            database.execute(
                "INSERT INTO jobs_job (id, kind, payload, state, priority, run_at, attempt, excused, kills, worker,"
                " 'group', cancel_requested, progress, error, created_at)"
                " VALUES (?, 'documents.completed', '{}', 'failed', 0, '2026-01-01', 2, 0, 2, '', '', 0, '{}', ?,"
                " '2026-01-01')",
                (f"{number}", error),
            )
        database.commit()
    found = run("doctor", data=data, check=False)
    assert "WARN  background jobs: given up, because their process ended while they ran: documents.completed (2); " in (
        found.stdout
    )
