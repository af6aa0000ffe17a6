"""What a server has imported when its start is over: each module stays in the memory of every process."""

import json
import subprocess
import sys

from services.ports import free_port
from services.product import environment

RARE = {
    "dns": "proofs of a domain",
    "obstore": "documents in S3",
    "openpyxl": "spreadsheets",
    "prometheus_client": "metrics",
    "psycopg": "an instance on PostgreSQL",
    "starlette": "downloads of exports",
}
"""Libraries of at least 1 MB that only some instances use, and for what."""

PROGRAM = """
import json, os, signal, sys
from muniment import cli
from muniment.server.app import startup

def tell():
    print(json.dumps(sorted(sys.modules)), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

startup.release_free_memory = tell  # the last step of a start
sys.argv[0] = "muniment"
cli.main()
"""


def test_a_start_imports_no_library_that_only_some_instances_use(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "serve", "--port", str(free_port())],
        env=environment(tmp_path, database_url=""),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    imported = set(json.loads(done.stdout))
    assert {"django", "muniment.web.urls", "muniment.mcp.tools.owner.server"} <= imported, "the start was not over"
    assert sorted(imported & RARE.keys()) == []
