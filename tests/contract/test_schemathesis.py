"""Schemathesis, with all its checks, against the running server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.product import Product, run

TESTS = str(Path(__file__).parents[1])
pytestmark = pytest.mark.requirement("openapi.complete")


def examine(product, folder, *arguments):
    done = subprocess.run(
        [Path(sys.executable).parent / "schemathesis", "run", f"{product.url}/openapi.json"]
        # A stream has no end that could be waited for; tests/api/test_changes.py reads it.
        + [
            "--exclude-path",
            "/api/v1/changes/stream",
            "--checks",
            "all",
            "--seed",
            "7",
            "--no-color",
            "--continue-on-failure",
            *arguments,
        ],
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "contract.schemathesis_hooks",
            "PYTHONPATH": str(Path(__file__).parents[1]),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1700,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    operations = len(product.get("/openapi.json").json()["paths"])
    assert f"{operations - 1}/{operations}" in done.stdout, "every operation but the stream was examined"


@pytest.mark.parametrize("examples", [1, 5])
@pytest.mark.whole(keeps=1)
def test_the_demo_passes_every_check(demo, tmp_path, examples):
    examine(demo, tmp_path, "--max-examples", str(examples))


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_a_real_registry_passes_every_check(sample_data, tmp_path):
    run("import", str(sample_data), data=tmp_path / "data", check=False)
    with Product(tmp_path / "data") as product:
        assert product.data_of("/api/v1/stats")["total"] > 10_000
        examine(product, tmp_path, "--max-examples", "150")
