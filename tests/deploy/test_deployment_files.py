"""The files of deploy/: their form, what they may do, and that they speak of what the product has."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from muniment.cli import main as command
from muniment.config import SETTINGS, Config
from muniment.documents.storage import Storage, StorageUnavailable
from services.product import run
from services.s3 import KEY, S3, SECRET

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
MANIFESTS = [
    document
    for file in sorted((DEPLOY / "kubernetes").rglob("*.yaml"))
    if file.parent.name != "cluster"  # PostgreSQL's, below
    for document in yaml.safe_load_all(file.read_text())
]
OURS = {name: service for name, service in COMPOSE["services"].items() if service["image"].startswith("muniment:")}
PODS = {
    each["metadata"]["name"]: each["spec"].get("jobTemplate", each)["spec"]["template"]["spec"]
    for each in MANIFESTS
    if each["kind"] in {"Deployment", "CronJob"}
}
CONTAINERS = [
    pytest.param(container, id=f"{name}-{container['name']}")
    for name, pod in PODS.items()
    for container in (*pod.get("initContainers", ()), *pod["containers"])
]
OF_COMPOSE = {
    "MUNIMENT_DATABASE_URL",
    "MUNIMENT_STORAGE_URL",
    "MUNIMENT_BASE_URL",
    "MUNIMENT_SECRET_KEY",
    "MUNIMENT_TRUSTED_PROXIES",
    "MUNIMENT_FORWARDED_HEADER",
    "MUNIMENT_BACKUPS",
}
RCLONE = Path(sys.executable).parent / "rclone"
OF_THE_PROXY = {"MUNIMENT_SITE", "MUNIMENT_NODES"}
MOST_EXPOSED = 2.0
"""Of 10, as systemd counts; a unit without any hardening has 9.6."""


def taken(words: list[str]) -> None:
    """Hold a command line of ours against the command: it exists and takes these options."""
    command.all()[words[0]].make_context(words[0], list(words[1:]), resilient_parsing=False)


@pytest.mark.requirement("ops.deployment")
def test_compose_follows_the_published_format():
    schema = json.loads((ROOT / "tests" / "schemas" / "compose-spec.json").read_text())
    jsonschema.Draft7Validator(schema).validate(COMPOSE)


def test_the_cluster_of_compose_follows_the_published_format_and_fits_to_compose():
    cluster = yaml.safe_load((DEPLOY / "compose.cluster.yaml").read_text())
    schema = json.loads((ROOT / "tests" / "schemas" / "compose-spec.json").read_text())
    jsonschema.Draft7Validator(schema).validate(cluster)
    assert set(cluster["services"]) & set(COMPOSE["services"]) == {"database"}
    assert set(re.findall(r"\$\{([A-Z_]+)", yaml.safe_dump(cluster))) == {"POSTGRES_PASSWORD"}
    haproxy = (DEPLOY / "cluster" / "haproxy.cfg").read_text()
    nodes = re.findall(r"(?m)^    server (\S+) (\S+):5432 check port 8008$", haproxy)
    assert [name for name, _ in nodes] == ["postgres-1", "postgres-2", "postgres-3"]
    for name, host in nodes:
        environment = cluster["services"][name]["environment"]
        assert environment["PATRONI_NAME"] == name == host
        assert environment["PATRONI_POSTGRESQL_CONNECT_ADDRESS"] == f"{name}:5432"
    for service in cluster["services"].values():
        assert "ports" not in service, "only the proxy is reached from outside"
        assert service["networks"] == ["inside"]
        assert service["cap_drop"] == ["ALL"]


def test_the_pods_of_the_cluster_in_kubernetes_run_confined_and_are_found_by_their_services():
    files = (DEPLOY / "kubernetes" / "cluster").glob("*.yaml")
    made = [each for file in files for each in yaml.safe_load_all(file.read_text())]
    pods = [each["spec"]["template"] for each in made if each["kind"] in {"Deployment", "StatefulSet"}]
    components = {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods}
    assert components == {"etcd", "postgres", "pooler", "haproxy"}
    for pod in pods:
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        for container in pod["spec"]["containers"]:
            assert container["image"] == "muniment-cluster:0.1.0"
            assert container["resources"]["limits"]["memory"]
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
    services = {each["metadata"]["name"]: each["spec"]["selector"] for each in made if each["kind"] == "Service"}
    assert {selector["app.kubernetes.io/component"] for selector in services.values()} == components
    settings = "".join(file.read_text() for file in (DEPLOY / "cluster").iterdir())
    for name in ("postgres-1", "postgres-2", "postgres-3", "haproxy", "etcd"):
        assert name in services
        assert name in settings


def test_every_setting_that_is_named_is_one():
    known = {setting.variable for setting in SETTINGS} | OF_THE_PROXY
    for file in DEPLOY.rglob("*"):
        if file.is_file():
            named = set(re.findall(r"MUNIMENT_[A-Z_]+(?<!_)", file.read_text())) - known
            assert not named, f"{file.relative_to(ROOT)} names {named}"


def test_the_compose_file_of_litestream_follows_the_format_and_has_every_variable_that_it_uses():
    folder = DEPLOY / "litestream"
    found = yaml.safe_load((folder / "compose.yaml").read_text())
    schema = json.loads((ROOT / "tests" / "schemas" / "compose-spec.json").read_text())
    jsonschema.Draft7Validator(schema).validate(found)
    given = {line.partition("=")[0] for line in (folder / "example.env").read_text().splitlines()}
    used = set(re.findall(r"\$\{(\w+)\}", (folder / "litestream.yml").read_text()))
    for service in found["services"].values():
        assert service["env_file"] == [".env"]
        assert used <= given | set(service["environment"])
        assert service["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("name", OURS)
def test_compose_passes_every_documented_setting(name):
    service = OURS[name]
    assert service["env_file"] == [".env"], "each variable of the file reaches the process"
    settings = {setting.variable for setting in SETTINGS}
    passed = dict(line.split("=", 1) for line in (DEPLOY / "example.env").read_text().splitlines() if "=" in line)
    fixed = settings & set(service["environment"])
    assert fixed == OF_COMPOSE, "a setting that compose fixes cannot be set in the file"
    interpolated = set(re.findall(r"\$\{([A-Z_]+)", yaml.safe_dump(COMPOSE)))
    assert interpolated <= set(passed), "what compose needs is in the example"
    assert not {line for line in passed if line.startswith("MUNIMENT_")} - settings - OF_THE_PROXY


def test_one_service_of_compose_and_one_job_of_kubernetes_make_the_backups():
    places = {name: service["environment"]["MUNIMENT_BACKUPS"] for name, service in OURS.items()}
    assert places.pop("worker") == "${MUNIMENT_BACKUPS:-/backups}"
    assert set(places.values()) == {"off"}
    assert "backups:/backups" in OURS["worker"]["volumes"]
    assert re.search(r"install --directory --owner=10001 .* /backups", (DEPLOY / "Containerfile").read_text())
    off = {"name": "MUNIMENT_BACKUPS", "value": "off"}
    makes = [name for name, pod in PODS.items() if off not in pod["containers"][0].get("env", [])]
    assert makes == ["muniment-backup"]
    secret = (DEPLOY / "kubernetes" / "overlays" / "example" / "example-secret.env").read_text()
    (place,) = re.findall(r"(?m)^MUNIMENT_BACKUPS=(.*)$", secret)
    assert Config({"MUNIMENT_BACKUPS": place}).backup_place == place


def test_the_store_of_compose_is_the_rclone_of_the_suite_and_takes_its_key(tmp_path):
    store = COMPOSE["services"]["store"]
    own = subprocess.run([RCLONE, "version"], capture_output=True, text=True, check=True, timeout=30)
    assert f"v{store['image'].partition(':')[2]}\n" in own.stdout
    secrets = {"STORE_KEY": KEY, "STORE_SECRET": SECRET}
    given = {
        name: re.sub(r"\$\{(\w+):\?\}", lambda x: secrets[x[1]], value) for name, value in store["environment"].items()
    }
    with S3(tmp_path / "s3", environment=given) as s3:
        Storage(tmp_path, s3.url()).probe()
        with pytest.raises(StorageUnavailable):
            Storage(tmp_path, s3.url("another-secret")).probe()


def test_images_are_named_without_a_host_and_with_a_version():
    containerfile = (DEPLOY / "Containerfile").read_text()
    named = [service["image"] for service in COMPOSE["services"].values()]
    named += re.findall(r"(?m)^ARG BASE=(\S+)$", containerfile)
    assert set(re.findall(r"(?m)^FROM (\S+)", containerfile)) == {"${BASE}"}
    (tagged,) = (each["images"] for each in MANIFESTS if each["kind"] == "Kustomization" and "images" in each)
    named += [f"{each['name']}:{each['newTag']}" for each in tagged]
    assert {container.values[0]["image"] for container in CONTAINERS} == {each["name"] for each in tagged}
    for image in named:
        name, _, tag = image.partition(":")
        assert tag, image
        assert tag != "latest", image
        assert "." not in name.partition("/")[0], f"{image} names a host"


def test_the_image_has_an_unprivileged_user_and_watches_itself():
    last = (DEPLOY / "Containerfile").read_text().rpartition("\nFROM ")[2]
    assert re.search(r"(?m)^USER 10001:10001$", last)
    assert "HEALTHCHECK" in last
    assert "COPY src" not in last
    for lock in ("build", "container"):
        assert "--hash=sha256:" in (ROOT / "requirements" / f"{lock}.lock").read_text()


@pytest.mark.parametrize("name", OURS)
def test_a_service_of_compose_may_do_nothing_that_it_need_not(name):
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert not service.get("privileged")
    assert "ports" not in service, "only the proxy is reached from outside"
    taken(service["command"])


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_container_of_kubernetes_may_do_nothing_that_it_need_not(container):
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    taken(container["args"])


@pytest.mark.parametrize("name", PODS)
def test_a_pod_runs_unprivileged_and_without_access_to_its_cluster(name):
    pod = PODS[name]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["terminationGracePeriodSeconds"] > 30


@pytest.mark.parametrize("name", PODS)
def test_a_pod_without_a_secret_key_does_not_start(name, tmp_path):
    first, container = PODS[name]["initContainers"][0], PODS[name]["containers"][0]
    assert first["envFrom"] == container["envFrom"]
    refused = run(*first["args"], data=tmp_path, check=False, secret_key="")
    assert (refused.returncode, "MUNIMENT_SECRET_KEY is empty" in refused.stderr) == (1, True)
    assert run(*first["args"], data=tmp_path, secret_key="x" * 40).returncode == 0
    assert not list(tmp_path.iterdir())


def test_a_node_of_kubernetes_is_probed_where_the_product_answers():
    (node,) = PODS["muniment-node"]["containers"]
    assert {probe: node[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }


@pytest.fixture
def system(tmp_path):
    """Return the root of a system on which the units are installed, with everything that they call."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not on this machine")
    units = tmp_path / "etc" / "systemd" / "system"
    shutil.copytree(DEPLOY / "systemd", units)
    if (stock := Path("/usr/lib/systemd/system")).is_dir():
        shutil.copytree(stock, tmp_path / "usr" / "lib" / "systemd" / "system", symlinks=True)
    for unit in UNITS:
        for called in re.findall(r"(?m)^Exec\w+=(?:.* exec )?(/\S+)", unit.read_text()):
            program = tmp_path / called[1:]
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
    for name in ("bin/sh", "opt/muniment/bin/muniment"):
        assert (tmp_path / name).exists()
    (tmp_path / "etc" / "passwd").write_text("muniment:x:990:990::/:/usr/sbin/nologin\n")
    return tmp_path


@pytest.mark.requirement("ops.deployment")
def test_systemd_takes_every_unit_without_a_word(system):
    names = [unit.name for unit in (DEPLOY / "systemd").iterdir()]
    asked = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", f"--root={system}", *names]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_exposes_little(unit, system):
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", f"--root={system}", unit.name],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done
    assert float(found[1]) < MOST_EXPOSED


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_calls_what_the_command_takes(unit):
    (line,) = re.findall(r"(?m)^ExecStart=(.*)$", unit.read_text())
    words = shlex.split(line)
    if words[:2] == ["/bin/sh", "-c"]:
        words = shlex.split(words[2].removeprefix("exec "))
    if words[0] == "/usr/bin/litestream":
        assert words[1:] == ["replicate", "-config", "/etc/muniment/litestream.yml"]
        return
    assert words[0] == "/opt/muniment/bin/muniment"
    taken(words[1:])
