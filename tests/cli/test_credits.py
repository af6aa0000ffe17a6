"""`muniment credits grant`, and the proof of the ledger beside it."""

import pytest

from services.prepared import new_instance
from services.product import run


@pytest.mark.requirement("cli.operate")
def test_an_operator_grants_credits_and_the_doctor_proves_the_ledger(tmp_path):
    data = new_instance(tmp_path / "data")
    run("user", "create", "keeper@harbour.example", "--no-password", data=data)
    for _ in range(2):
        told = run("credits", "grant", "Keeper@harbour.example", "25", "--key", "spring", data=data).stdout
    assert "has 125 credits, 0 of them held" in told
    assert "OK    ledger: every balance equals its transfers" in run("doctor", "--ledger", data=data).stdout
    missing = run("credits", "grant", "unknown@harbour.example", "25", data=data, check=False)
    assert (missing.returncode, "not found" in missing.stderr) == (1, True)
