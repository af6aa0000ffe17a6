"""
Count what a typical question costs a model: tool calls, and bytes of answers that enter its context.

    python bench/agent_cost.py [--data FOLDER]

The question: which DAOs have the three biggest treasuries, and who runs them? It is asked of the demo registry, and of
a real one in the import form if a folder is given (or MUNIMENT_SAMPLE_DATA is set). Exits with 1 if the demo needs more
than 5 calls or 12 KB, or the list of tools more than 20 KB.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from muniment.store.reader import Reader
from services.mcp import Asker, modern, public_server
from services.product import DEMO

MOST_CALLS = 5
MOST_BYTES = 12_000
MOST_LIST_BYTES = 7_500
"""What a client shows a model of tools/list: name, description and input schema of each tool."""


class Agent:
    """Count what a model would read."""

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self.calls = 0
        self.read_bytes = 0

    def call(self, name: str, **arguments):
        """Call a tool and count the text that enters the context."""
        found = self.asker.call(name, arguments)
        text = found["content"][0]["text"]
        self.calls += 1
        self.read_bytes += len(text.encode())
        print(f"  {name} {json.dumps(arguments, ensure_ascii=False)}: {len(text.encode())} bytes")
        return json.loads(text)["data"]


def question(agent: Agent) -> None:
    """Answer the question as the server's instructions suggest."""
    for item in agent.call("list_companies", type="DAO", sort="treasury", pageSize=3):
        data = agent.call("get_company", slug=item["id"], parts=["positions"])
        who = (
            ", ".join(f"{held['person']['name']} ({held['title']})" for held in data["positions"][:3]) or "none listed"
        )
        print(f"    {item['name']}, {item.get('treasury', 'no treasury')}: {who}")


def measure(source: Path) -> tuple[int, int, int]:
    """Ask the registry in *source*; return calls, bytes and what a model sees of tools/list."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "MUNIMENT_DATA": folder}
        command = [sys.executable, "-m", "muniment", "import", str(source)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        reader = Reader(Path(folder) / "muniment.sqlite3")
        assert reader.edition, done.stderr
        try:
            with public_server(reader) as asker:
                tools = asker.ask(*modern("tools/list")).result["tools"]
                shown = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
                listed = len(json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode())
                agent = Agent(asker)
                question(agent)
        finally:
            reader.close()
    print(f"  {agent.calls} calls, {agent.read_bytes} bytes; tools/list {listed} bytes for a model\n")
    return agent.calls, agent.read_bytes, listed


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("MUNIMENT_SAMPLE_DATA") or None)
    given = parser.parse_args()
    print("the demo registry")
    calls, read_bytes, listed = measure(DEMO)
    if given.data:
        print("a real registry")
        measure(given.data)
    return int(calls > MOST_CALLS or read_bytes > MOST_BYTES or listed > MOST_LIST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
