"""`muniment doctor --values` lists the stored values that break a rule, and fails no check because of them."""

import pytest

from make.registry import draft, owner
from muniment.registry.models import Company
from muniment.server.stored_checks import examine_values
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


def test_the_command_checks_values_where_asked(tmp_path):
    data = new_instance(tmp_path / "data")
    assert "OK    values: every stored value follows the rules" in run("doctor", "--values", data=data).stdout
    assert "values:" not in run("doctor", data=data).stdout
