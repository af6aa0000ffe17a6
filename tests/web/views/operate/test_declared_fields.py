"""The operator's pages of declared fields."""

import re

import pytest

from make.accounts import account, signed_in
from make.registry import owner, published
from make.reports import do_jobs
from muniment import config
from muniment.accounts.models import SecurityEvent
from muniment.config import Config
from muniment.jobs.models import Job
from muniment.kernel.actor import COMMAND
from muniment.registry.declared import progress
from muniment.registry.models import Company, RegistryVersion
from muniment.registry.publishing import publisher
from muniment.registry.settings.versions import apply_settings, latest_version, restore_version
from muniment.registry_toml.document import RegistrySettings
from muniment.schema.objects import registry_schema
from muniment.searches.saved_searches import save_search

pytestmark = pytest.mark.django_db
HOME = "/operate/fields"
BERTHS = {"key": "berths", "label": "Berths", "kind": "number", "min": 0}
QUAY = {"key": "quay", "label": "Quay", "kind": "text"}


@pytest.fixture(autouse=True)
def own_folder(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_current", Config({}, data=tmp_path))
    settings.DECLARED_FIELDS, settings.SCHEMA = (), registry_schema("USD")


@pytest.fixture
def operator():
    return signed_in(account("operator@harbour.example", "operator"))


def declare(*tables):
    return apply_settings(COMMAND, RegistrySettings(fields=tables))


def tables():
    return [dict(each) for each in latest_version().settings.fields]


def page(client, address=HOME):
    answer = client.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


def sent(client, address, **values):
    given = {"version": str(latest_version().number), "kind": "text", "in_lists": "on", "do": "apply", **values}
    return client.post(address, given)


def test_a_field_is_added_with_a_key_made_of_its_label_and_comes_into_use(operator):
    assert "No fields of your own yet." in page(operator)
    assert "The fields are in use." not in page(operator)
    answer = sent(operator, f"{HOME}/company", label="Größe of quay", kind="number", min="0", max="2.5", help="In m.")
    assert answer.status_code == 302
    assert tables() == [
        {"of": "company", "key": "grosseOfQuay", "label": "Größe of quay", "kind": "number", "help": "In m."}
        | {"min": 0, "max": 2.5}
    ]
    assert SecurityEvent.objects.filter(event="registry_changed").latest("pk").detail["changed"] == ["fields"]
    shown = page(operator)
    assert "The fields are being applied" in shown
    assert 'hx-trigger="every 1s"' in shown
    do_jobs()
    shown = page(operator)
    assert "The fields have been in use since" in shown
    assert "hx-trigger" not in shown.partition('id="standing"')[2]
    assert "grosseOfQuay" in shown


def test_a_preview_shows_form_page_and_filters_and_applies_nothing(operator):
    published(owner(), name="Harbour")
    Company.objects.update(extra={"depth": 7})
    answer = sent(operator, f"{HOME}/company", label="Depth", kind="number", do="preview")
    shown = answer.content.decode()
    assert answer.status_code == 200
    assert not RegistryVersion.objects.exists()
    assert "Nothing is applied yet." in shown
    assert 'id="preview_depth"' in shown
    assert "{&quot;depth&quot;:12}" in shown
    assert all(f"<code>{name}</code>" in shown for name in ("hasDepth", "depthMin", "depthMax"))
    assert "1 stored value becomes the value of this field. It fits." in shown


@pytest.mark.parametrize(
    ("values", "name", "fault"),
    [
        ({"label": "", "key": "quay"}, "label", "The label is missing."),
        ({"label": "Quay", "key": "Quay 7"}, "key", "Key must be 2 to 40 letters and digits"),
        ({"label": "船", "key": ""}, "key", "Key is missing."),
        ({"label": "Website", "key": ""}, "key", "The name website is taken by a built-in field"),
        ({"label": "Berths"}, "key", "A field of a company with the name berths is declared already."),
        ({"label": "Quay\u202e7"}, "label", "Label contains the bidirectional character U+202E."),
        ({"label": "Quay", "kind": "choice"}, "choices", "Enter at least one choice, one per line."),
        ({"label": "Quay", "kind": "choice", "choices": "A\na"}, "choices", "Choices has a text twice."),
        ({"label": "Quay", "kind": "number", "min": "few"}, "min", "Min and max must be numbers."),
        ({"label": "Quay", "kind": "number", "min": "inf"}, "min", "Min and max must be numbers."),
        ({"label": "Quay", "kind": "number", "min": "9", "max": "1"}, "min", "Min is greater than max."),
        ({"label": "Quay", "kind": "text", "max": "9999"}, "max", "Max of a text must be a whole number"),
        ({"label": "Quay", "kind": "hologram"}, "kind", "Select a valid choice."),
        ({"label": "Quay", "kind": "identifier", "check": "vat"}, "check", "Select a valid choice."),
    ],
)
def test_each_fault_is_beside_its_field_and_what_was_typed_stays(values, name, fault, operator):
    declare(BERTHS)
    answer = sent(operator, f"{HOME}/company", **values)
    shown = answer.content.decode()
    assert answer.status_code == 422
    found = re.search(rf'<ul class="fault" id="id_{name}_fault">(.*?)</ul>', shown, re.DOTALL)
    assert found is not None, shown
    assert fault in found[1].replace("&#x27;", "'")
    assert len(tables()) == 1


def test_markup_in_a_label_is_text(operator):
    assert sent(operator, f"{HOME}/company", label="<script>x</script>", key="quay").status_code == 302
    for address in (HOME, f"{HOME}/company/quay"):
        assert "<script>x" not in page(operator, address)
    assert "&lt;script&gt;x" in page(operator)


def test_values_that_do_not_fit_are_listed_and_nothing_is_applied(operator):
    declare(QUAY)
    published(owner(), name="Harbour")
    Company.objects.update(extra={"quay": "Quay 7"})
    answer = sent(operator, f"{HOME}/company/quay", label="Quay", kind="date")
    shown = answer.content.decode()
    assert answer.status_code == 422
    assert "1 of 1 stored value does not fit." in shown
    assert '<a href="/companies/harbour"><bdi>harbour</bdi></a>' in shown
    assert "must be a date such as 2024-03-31, not &#x27;Quay 7&#x27;" in shown
    assert tables() == [QUAY]


def test_stored_values_that_do_not_fit_any_more_are_counted(operator):
    declare(BERTHS)
    published(owner(), name="Harbour")
    Company.objects.update(extra={"berths": "many"})
    assert "1 does not fit" in page(operator)


def test_a_field_is_edited_and_its_key_stays(operator):
    declare(QUAY)
    assert 'value="quay"' in page(operator, f"{HOME}/company/quay")
    answer = sent(operator, f"{HOME}/company/quay", label="Pier", key="pier", help="As painted.")
    assert answer.status_code == 302
    assert tables() == [{"of": "company", "key": "quay", "label": "Pier", "kind": "text", "help": "As painted."}]


def test_options_of_another_kind_do_not_count(operator):
    given = {"label": "Quay", "kind": "choice", "choices": "A\n B  b \n", "min": "1", "check": "lei"}
    assert sent(operator, f"{HOME}/company", **given).status_code == 302
    assert tables() == [{"of": "company", "key": "quay", "label": "Quay", "kind": "choice", "choices": ["A", "B b"]}]


def test_a_field_starts_from_a_preset(operator):
    shown = page(operator, f"{HOME}/person?preset=lei")
    assert 'value="LEI"' in shown
    assert '<option value="lei" selected>' in shown
    assert sent(operator, f"{HOME}/person?preset=lei", label="LEI", kind="identifier", check="lei").status_code == 302
    assert tables() == [{"of": "person", "key": "lei", "label": "LEI", "kind": "identifier", "check": "lei"}]
    assert f"{HOME}/person?preset=lei" not in page(operator)
    assert f"{HOME}/company?preset=lei" in page(operator)


def test_fields_are_moved_retired_used_again_and_removed(operator):
    declare(BERTHS, {**QUAY, "of": "person"}, QUAY)
    assert sent(operator, f"{HOME}/company/quay/up").status_code == 302
    assert tables() == [QUAY, {**QUAY, "of": "person"}, BERTHS]
    sent(operator, f"{HOME}/company/quay/up")
    assert [each["key"] for each in tables()] == ["quay", "quay", "berths"]
    sent(operator, f"{HOME}/company/quay/down")
    assert tables()[0] == BERTHS
    sent(operator, f"{HOME}/company/berths/retire")
    assert tables()[0] == {**BERTHS, "retired": True}
    sent(operator, f"{HOME}/company/berths/use")
    assert tables()[0] == BERTHS
    number = latest_version().number
    assert operator.post(f"{HOME}/company/berths/remove?version={number}").status_code == 302
    assert [each["key"] for each in tables()] == ["quay", "quay"]


def test_the_question_before_a_removal_says_what_becomes_of_values_and_saved_searches(operator):
    declare(BERTHS)
    who = owner()
    published(who, name="Harbour")
    Company.objects.update(extra={"berths": 3})
    save_search(who, "companies", "berthsMin=2&q=sea", "Large")
    save_search(who, "companies", "q=berthsMin", "Other")
    shown = page(operator, f"{HOME}/company/berths/remove?version=1")
    assert "1 value is kept." in shown
    assert "1 saved search filters by it, and will find more." in shown


def test_of_two_operators_who_change_at_once_the_second_is_told(operator):
    declare(BERTHS)
    declare(BERTHS, QUAY)
    answer = sent(operator, f"{HOME}/company", label="Tide", version="1")
    assert answer.status_code == 200
    assert "The settings were changed by someone else." in answer.content.decode()
    assert 'value="Tide"' in answer.content.decode()
    for address in (f"{HOME}/company/quay/up", f"{HOME}/company/quay/retire"):
        told = operator.post(address, {"version": "1"}, follow=True).content.decode()
        assert "The settings were changed by someone else." in told
    told = operator.post(f"{HOME}/company/quay/remove?version=1", follow=True).content.decode()
    assert "The settings were changed by someone else." in told
    told = operator.post(f"{HOME}/company/quay/up", follow=True).content.decode()
    assert "does not say which version" in told
    assert tables() == [BERTHS, QUAY]


def test_a_field_that_is_not_declared_has_no_page(operator):
    for address in (f"{HOME}/company/quay", f"{HOME}/company/quay/remove", f"{HOME}/ship"):
        assert operator.get(address).status_code == 404
    assert operator.post(f"{HOME}/company/quay/up", {"version": "0"}).status_code == 404


def test_the_fifty_first_field_is_refused(operator):
    declare(*({**QUAY, "key": f"quay{n}"} for n in range(50)))
    assert "There are 50 fields, which is the most." in page(operator)
    answer = sent(operator, f"{HOME}/company", label="Tide")
    assert answer.status_code == 422
    assert "there are 51 fields of a company; at most 50 are allowed" in answer.content.decode()


def test_a_job_that_failed_is_shown(operator):
    declare(BERTHS)
    Job.objects.filter(kind=progress.KIND).update(state="failed", error="disk full")
    shown = page(operator)
    assert "could not be applied" in shown
    assert "disk full" in shown


def test_progress_is_told_while_documents_are_rendered(monkeypatch):
    published(owner(), name="Harbour")
    declare(BERTHS)
    told = []
    original = progress.tell
    monkeypatch.setattr(progress, "tell", lambda done: (original(done), told.append(progress._done())))
    progress.tell(1)
    found = progress.progress_of(publisher.head()[1])
    assert (found.is_in_use, found.done, found.total) == (False, 1, 1)
    progress.forget()
    do_jobs()
    assert told == [1, 0]
    assert progress.progress_of(publisher.head()[1]).is_in_use


def test_fields_that_are_taken_back_before_they_are_in_use_are_rendered_all_the_same():
    declare(QUAY)
    do_jobs()
    declare(BERTHS)
    restore_version(COMMAND, 1)
    waiting = Job.objects.filter(state="queued").order_by("created_at")
    assert [each.payload["again"] for each in waiting] == [False, True]
    do_jobs()
    assert progress.progress_of(publisher.head()[1]).is_in_use


def test_fields_that_a_later_version_has_declared_are_left_alone(operator):
    declare(QUAY)
    RegistryVersion.objects.update(document={"fields": [{**QUAY, "kind": "hologram"}]})
    answer = operator.get(HOME)
    assert answer.status_code == 409
    assert "A later version of Muniment has declared fields" in answer.content.decode()
    assert sent(operator, f"{HOME}/company/quay/up").status_code == 302
    assert tables() == [{**QUAY, "kind": "hologram"}]
