"""Prometheus on loopback, which scrapes nodes and evaluates the alerts of deploy/."""

import json
import re
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from services.installed import program
from services.ports import free_port, wait_until

ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yaml"


class Prometheus:
    """
    The server, in a context; it scrapes *targets* (host:port) once per second.

    Args:
        waits: whether alerts wait as long as they do in deploy/; without it they fire after a second.
    """

    def __init__(self, folder: Path, targets: Sequence[str], *, waits: bool = True) -> None:
        self.port = free_port()
        self._folder = folder
        folder.mkdir(parents=True)
        rules = ALERTS.read_text()
        if not waits:
            rules = re.sub(r"(?m)^        for: .*$", "        for: 1s", rules)
        (folder / "alerts.yaml").write_text(rules)
        (folder / "prometheus.yml").write_text(
            yaml.safe_dump(
                {
                    "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(folder / "alerts.yaml")],
                    "scrape_configs": [{"job_name": "registry", "static_configs": [{"targets": list(targets)}]}],
                }
            )
        )
        self._process: subprocess.Popen[bytes] | None = None

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return json.loads(answer.read())

    def alerts(self) -> dict[str, str]:
        """Return the state of each active alert by its name: pending or firing."""
        return {each["labels"]["alertname"]: each["state"] for each in self._get("/api/v1/alerts")["data"]["alerts"]}

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._get("/api/v1/rules")["data"]["groups"] for rule in group["rules"]]

    def _is_up(self) -> bool:
        try:
            targets = self._get("/api/v1/targets")["data"]["activeTargets"]
        except OSError:
            return False
        return bool(targets) and all(each["health"] == "up" for each in targets)

    def __enter__(self) -> Self:
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    program("prometheus"),
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_until(self._is_up, within_s=30, what="Prometheus scraping every target", every_s=0.2)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
