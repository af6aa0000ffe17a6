"""Clients that others generate from the contract compile, and read everything there is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.node import NODE

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
EVERYTHING = {"companies": 60, "people": 41, "frameworks": 6}

pytestmark = pytest.mark.requirement("openapi.complete")


def run(*command, cwd):
    environment = {
        **os.environ,
        "PATH": f"{NODE.parent}{os.pathsep}{BIN}{os.pathsep}{os.environ['PATH']}",
        "CI": "true",
    }
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_python_client_compiles_and_reads_all_pages(demo, tmp_path):
    (tmp_path / "openapi.json").write_bytes(demo.get("/openapi.json").body)
    generated = run(
        *(BIN / "openapi-python-client", "generate", "--path", "openapi.json", "--output-path", "client"),
        *("--meta", "none", "--fail-on-warning"),
        cwd=tmp_path,
    )
    assert "Warning" not in generated
    run(sys.executable, "-W", "error", "-m", "compileall", "-q", "client", cwd=tmp_path)
    assert json.loads(run(sys.executable, HERE / "crawl.py", tmp_path, demo.url, cwd=tmp_path)) == EVERYTHING
