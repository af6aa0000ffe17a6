"""The dashboard and the alerts: every expression names a metric, and a label, that /metrics has."""

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "deploy" / "grafana" / "muniment.json").read_text()
DASHBOARD = json.loads(TEXT)
OF_PROMETHEUS = {"job", "instance", "le", "process"}
"""Labels that the scrape adds, the histogram's own, and the one that tells the processes of a node apart."""
_ROW = re.compile(r"(?m)^\| `(\w+)` \| (\w+) \|([^|]*)\|")


def explained():
    """Return type and labels of every metric that docs/OBSERVABILITY.md explains, for comparison with /metrics."""
    rows = _ROW.findall((ROOT / "docs" / "OBSERVABILITY.md").read_text())
    return {name: (kind, set(labels.replace(",", " ").split())) for name, kind, labels in rows}


def expressions():
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], target["legendFormat"]


@pytest.mark.requirement("ops.dashboard")
def test_every_expression_names_metrics_and_labels_that_there_are():
    metrics = explained()
    for title, expression, legend in expressions():
        names = re.findall(r"\b((?:muniment|process)_\w+)", expression)
        assert names, title
        labels = set(OF_PROMETHEUS)
        for name in names:
            kind, own = metrics.get(name, ("", set()))
            if not kind:
                kind, own = metrics[re.sub(r"_(bucket|sum|count)$", "", name)]
                assert kind == "histogram", (title, name)
            labels |= own
            assert (f"rate({name}" in expression) == (kind in {"counter", "histogram"}), f"{title}: {name} is a {kind}"
        used = set(re.findall(r'(\w+)(?:=~|!~|!=|=)"', expression))
        used |= {label for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(", ")}
        used |= set(re.findall(r"\{\{(\w+)\}\}", legend))
        assert used <= labels, (title, used - labels)


def test_every_metric_has_its_place_on_the_dashboard():
    shown = " ".join(expression for _, expression, _ in expressions())
    assert {name for name in explained() if name not in shown} == set()


def test_the_variables_are_those_that_expressions_use():
    declared = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", TEXT)) - {"__rate_interval"}
    assert used == declared


def test_panels_do_not_overlap():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    taken = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(taken) == len(set(taken))
    assert all(at["x"] + at["w"] <= 24 for at in places)


def test_every_alert_asks_for_metrics_and_labels_that_there_are():
    metrics = explained()
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text())["groups"][0]["rules"]
    for rule in rules:
        found = re.findall(r"\bmuniment_\w+", rule["expr"])
        names = {re.sub(r"_bucket$", "", name) for name in found}  # of a histogram
        assert names, rule["alert"]
        assert names <= set(metrics), rule["alert"]
        labels = OF_PROMETHEUS.union(*(metrics[name][1] for name in names))
        used = {label for group in re.findall(r"by \(([^)]*)\)", rule["expr"]) for label in group.split(", ")}
        used |= set(re.findall(r'(\w+)(?:=~|!~|!=|=)"', rule["expr"]))
        assert used <= labels, rule["alert"]
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= used, rule["alert"]
