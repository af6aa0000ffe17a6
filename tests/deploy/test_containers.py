"""The container image, built and started by Podman."""

import json
import os
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from services import containers
from services.containers import DEPLOY, IMAGE
from services.ports import free_port, wait_until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600), pytest.mark.sqlite]
DEMO = DEPLOY.parent / "src" / "muniment" / "demo"
COMPANY = "/api/v1/companies/quillmere"
USER = 10001
CONFINED = ("--read-only", "--tmpfs=/tmp", "--cap-drop=all", "--security-opt=no-new-privileges")
"""As compose.yaml and the manifests confine it."""
PASSWORD = "of-the-proof"
SETTINGS = {
    "MUNIMENT_BASE_URL": "https://registry.example",
    "MUNIMENT_DATABASE_URL": f"postgresql://muniment:{PASSWORD}@database:5432/muniment",
    "MUNIMENT_SECRET_KEY": "0123456789abcdef" * 4,
    "MUNIMENT_BACKUPS": "/data/backups",
}
"""What the overlay of the example puts into a config map and a secret."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory, request):
    """Yield an engine with the image of the Containerfile; remove everything afterwards."""
    if os.geteuid() != 0:
        pytest.skip("debootstrap, and networks with names, need root")
    with containers.podman(tmp_path_factory.mktemp("containers")) as made:
        if made.driver == "vfs":
            terminal = request.config.pluginmanager.getplugin("terminalreporter")
            terminal.write_line("This machine permits no overlay file system: the images are stored without (vfs).")
        made.build(IMAGE, DEPLOY / "Containerfile", DEPLOY.parent, f"--build-arg=BASE={containers.BASE}")
        yield made


@pytest.fixture(autouse=True)
def _removes_its_containers(engine):
    yield
    engine.remove_containers()


def answer(base: str, path: str) -> tuple[int, str]:
    """Return status and body, 0 while nothing answers."""
    unverified = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(f"{base}{path}", timeout=20, context=unverified) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except (OSError, urllib.error.URLError):
        return 0, ""


def wait_for(engine, base: str, path: str, expected: int = 200, *, within_s: float = 240) -> str:
    """Wait until *path* has the status, and return its body; on failure, say what the containers wrote."""
    try:
        wait_until(lambda: answer(base, path)[0] == expected, within_s=within_s, what=f"{path} being {expected}")
    except TimeoutError as error:
        raise AssertionError(f"{error}\n{logs(engine)}") from None
    return answer(base, path)[1]


def logs(engine) -> str:
    """Return the end of what every container wrote."""
    names = engine("ps", "--all", "--format", "{{.Names}} {{.Status}}").splitlines()
    told = []
    for name in names:
        done = engine.run("logs", "--tail=20", name.split()[0], check=False)
        told.append(f"--- {name}\n{done.stdout}{done.stderr}")
    return "\n".join(told)


def served(engine, name: str, *options: str) -> str:
    """Start a node, confined, and return its address when it is ready."""
    port = free_port()
    engine("run", "--detach", f"--name={name}", *CONFINED, f"--publish=127.0.0.1:{port}:8000", *options, IMAGE)
    base = f"http://127.0.0.1:{port}"
    wait_for(engine, base, "/readyz")
    return base


@pytest.mark.requirement("ops.deployment")
def test_the_image_imports_restarts_backs_up_and_restores_without_root_and_read_only(engine):
    def once(volume: str, *arguments: str) -> str:
        shared = [f"--volume={volume}:/data", "--volume=backups:/backups", f"--volume={DEMO}:/import:ro"]
        return engine("run", "--rm", *CONFINED, *shared, IMAGE, *arguments)

    base = served(engine, "first", "--volume=data:/data")
    assert "/setup/" in engine.run("logs", "first").stderr
    once("data", "import", "/import")
    company = wait_for(engine, base, COMPANY)
    assert engine("exec", "first", "id", "--user") == str(USER)
    assert engine.run("exec", "first", "touch", "/opt/muniment/x", check=False).returncode != 0
    assert engine.run("healthcheck", "run", "first", check=False).returncode == 0
    engine("restart", "first")
    assert wait_for(engine, base, COMPANY) == company
    once("data", "backup", "/backups/first.muniment")
    engine("stop", "first")
    assert engine("inspect", "--format={{.State.ExitCode}}", "first") == "0", "a stop is orderly"
    once("restored", "restore", "/backups/first.muniment")
    assert wait_for(engine, served(engine, "second", "--volume=restored:/data"), COMPANY) == company
    for word in ("Traceback", "Read-only file system", "Permission denied"):
        assert word not in logs(engine)


def test_the_image_runs_as_any_user_who_owns_the_data_folder(engine, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, 4242, 4242)
    tmp_path.chmod(0o755)
    served(engine, "any", "--user=4242:4242", f"--volume={data}:/data")
    assert {file.stat().st_uid for file in data.rglob("*")} == {4242}


def test_the_image_has_no_installer_and_every_extra(engine):
    found = "import stripe, openai, opentelemetry.sdk.trace, opentelemetry.exporter.otlp.proto.http"
    engine("run", "--rm", *CONFINED, "--entrypoint=python", IMAGE, "-c", found)
    listed = engine("run", "--rm", "--entrypoint=find", IMAGE, "/opt/muniment", "-path", "*/pip/*")
    assert not listed


@pytest.fixture
def network(engine):
    """Start PostgreSQL under the name ``database``, and return the network that it is in."""
    folder = Path(containers.__file__).with_name("images") / "postgresql"
    image = "localhost/postgresql:proof"
    engine.build(image, folder / "Containerfile", folder, f"--build-arg=BASE={containers.BASE}")
    engine("network", "create", "cluster")
    settings = ("--env=POSTGRES_USER=muniment", f"--env=POSTGRES_PASSWORD={PASSWORD}")
    engine("run", "--detach", "--name=database", "--network=cluster", *settings, image)
    return "cluster"


def pod(kind: str, file: str, name: str) -> dict:
    """Return the pod that a manifest of the base starts, as Podman takes it."""
    manifests = yaml.safe_load_all((DEPLOY / "kubernetes" / "base" / file).read_text())
    (manifest,) = (each for each in manifests if each["kind"] == kind)
    holder = manifest["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else manifest["spec"]
    spec = json.loads(json.dumps(holder["template"]["spec"]))  # the containers share what an anchor of YAML names
    # Podman 4.3 restarts a finished container of an initialization under the policy of a deployment, Always.
    spec["restartPolicy"] = "Never"
    # It names the volume of an emptyDir after it alone: pods would share theirs.
    for volume in spec["volumes"]:
        volume["name"] = f"{name}-{volume['name']}"
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        container["image"] = IMAGE
        # Its form of a secret is another one in each main version. Ports would be published on every address.
        container["envFrom"] = [{"configMapRef": {"name": "muniment"}}]
        container.pop("ports", None)
        for mount in container.get("volumeMounts", []):
            mount["name"] = f"{name}-{mount['name']}"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def address(engine, name: str) -> str:
    """Return the IP address of a pod."""
    infrastructure = engine("pod", "inspect", "--format={{.InfraContainerID}}", name)
    return engine("inspect", "--format={{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", infrastructure)


@pytest.mark.requirement("ops.deployment")
def test_the_pods_of_kubernetes_serve_one_registry_and_back_it_up(engine, network, tmp_path):
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "muniment"}, "data": SETTINGS}

    def play(*pods: dict) -> None:
        file = tmp_path / "pods.yaml"
        file.write_text(yaml.safe_dump_all([config, *pods]))
        engine("kube", "play", f"--network={network}", file)

    nodes = ("node-one", "node-two")
    play(*(pod("Deployment", "node.yaml", name) for name in nodes), pod("Deployment", "worker.yaml", "worker"))
    for name in nodes:  # readiness is on a listener of its own
        wait_for(engine, f"http://{address(engine, name)}:8001", "/readyz")
    demo = "import muniment, pathlib; print(pathlib.Path(muniment.__file__).with_name('demo'))"
    folder = engine("exec", "node-one-node", "python", "-c", demo)
    engine("exec", "node-one-node", "muniment", "import", folder)
    first, second = (wait_for(engine, f"http://{address(engine, name)}:8000", COMPANY) for name in nodes)
    assert first == second
    play(pod("CronJob", "backup.yaml", "backup"))
    assert engine("wait", "backup-backup") == "0", logs(engine)
    assert "read back and verified" in engine("logs", "backup-backup")
    assert engine("inspect", "--format={{.State.Status}}", "worker-worker") == "running"
    for word in ("Traceback", "Read-only file system", "Permission denied"):
        assert word not in logs(engine)
