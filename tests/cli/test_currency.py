"""The currency of the amounts is stored with them: another setting is refused, with a way out."""

import json

from make.registry import lines
from services.ports import free_port
from services.prepared import new_instance
from services.product import Product, run

AMOUNT = {"company": {"id": "tidal", "name": "Tidal", "treasury": "$1.2M"}}


def test_an_instance_without_amounts_takes_another_currency_and_then_keeps_it(tmp_path):
    data = new_instance(tmp_path / "data")
    assert run("currency", data=data).stdout == "USD\n"
    euros = {"company": {**AMOUNT["company"], "treasury": "€1.2M"}}
    run("import", str(lines(tmp_path / "companies.jsonl", euros)), data=data, currency="EUR")
    assert run("currency", data=data, currency="EUR").stdout == "EUR\n"
    refused = run("migrate", data=data, check=False)
    assert refused.returncode == 78
    assert "The amounts of this instance are in EUR, but MUNIMENT_CURRENCY is USD. Set MUNIMENT_CURRENCY=EUR." in (
        refused.stderr
    )
    assert "Traceback" not in refused.stderr


def test_a_server_with_another_currency_does_not_start_and_doctor_says_why(tmp_path):
    data = new_instance(tmp_path / "data")
    run("import", str(lines(tmp_path / "companies.jsonl", AMOUNT)), data=data)
    examined = run("doctor", data=data, check=False, currency="EUR")
    assert examined.returncode == 1
    assert "FAIL  currency: The amounts of this instance are in USD" in examined.stdout
    assert "OK    currency: amounts are in USD" in run("doctor", data=data).stdout
    served = run("serve", "--port", str(free_port()), data=data, check=False, currency="EUR")
    assert served.returncode == 78
    assert "run muniment currency EUR once: it converts nothing." in served.stderr


def test_the_amounts_are_relabelled_once_on_demand_and_published_again(tmp_path):
    data = new_instance(tmp_path / "data")
    run("import", str(lines(tmp_path / "companies.jsonl", AMOUNT)), data=data)
    wrong = run("currency", "EUR", "--yes", data=data, check=False)
    assert wrong.returncode == 1
    assert "MUNIMENT_CURRENCY is USD, and every process must have the same." in wrong.stderr
    asked = run("currency", "EUR", data=data, currency="EUR", stdin="n\n", check=False)
    assert "Every amount is now in USD. Label it EUR, without conversion?" in asked.stderr
    assert run("currency", data=data).stdout == "USD\n"
    done = run("currency", "EUR", "--yes", data=data, currency="EUR")
    assert done.stdout == "The amounts are in EUR; every document was published again.\n"
    with Product(data, currency="EUR") as product:
        company = product.data_of("/api/v1/companies/tidal")["company"]
        assert company["treasury"] == "€1.2M"
    events = [json.loads(line) for line in run("audit", "--json", data=data, currency="EUR").stdout.splitlines()]
    assert any(each.get("detail", {}).get("after") == "EUR" for each in events)
