"""`muniment doctor --values` lists the stored values that break a rule, and fails no check because of them."""

import pytest

from make.registry import draft, owner
from muniment.registry.models import Company, Person
from muniment.server.doctor import examine_values
from services.prepared import new_instance
from services.product import run


@pytest.mark.django_db
def test_stored_values_that_break_a_rule_are_warnings():
    (fine,) = examine_values()
    assert (fine.mark, fine.says) == ("OK", "every stored value follows the rules")
    slug = draft(owner()).slug
    Company.objects.filter(slug=slug).update(website="javascript:alert(1)")
    total, value = examine_values()
    assert (total.mark, total.is_good, total.says[:15]) == ("WARN", True, "1 break a rule;")
    assert value.says.startswith(f"companies/{slug}: website must be a web address such as")


@pytest.mark.django_db
def test_stored_addresses_of_pictures_that_lead_nowhere_are_named():
    slug = draft(owner()).slug
    Company.objects.filter(slug=slug).update(icon="drive.example/file/view")
    Person.objects.create(slug="ada", name="Ada", extra={"picture": "javascript:alert(1)"})
    Person.objects.create(slug="bo", name="Bo", extra={"picture": f"/pictures/{'a' * 32}-512.webp"})
    total, *values = examine_values()
    assert total.says.startswith("2 break a rule;")
    assert [each.says for each in values] == [
        f"companies/{slug}: icon must be a web address such as https://example.org, not 'drive.example/file/view'",
        "people/ada: picture must be a web address such as https://example.org, not 'javascript:alert(1)'",
    ]


def test_the_command_checks_values_where_asked(tmp_path):
    data = new_instance(tmp_path / "data")
    assert "OK    values: every stored value follows the rules" in run("doctor", "--values", data=data).stdout
    assert "values:" not in run("doctor", data=data).stdout
