"""The files of deploy/ before the tools that they are for, and what the image becomes, started as in a container."""

import contextlib
import http.client
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from services import confined
from services.installed import program
from services.linters import lint
from services.ports import free_port, wait_until
from services.product import Product
from services.proxies import caddy

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1500)]
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = ("1.30", "1.33")
"""The oldest version that is still supported, and a current one."""


@pytest.mark.parametrize("folder", [DEPLOY, DEPLOY / "cluster"])
def test_hadolint_finds_nothing_in_the_containerfile(folder):
    done = lint("hadolint", "--failure-threshold", "style", folder / "Containerfile")
    assert (done.returncode, done.stdout) == (0, "")


def test_caddy_takes_its_file_as_it_would_write_it():
    done = lint("caddy", "validate", "--config", DEPLOY / "caddy" / "Caddyfile", "--adapter", "caddyfile")
    assert done.returncode == 0, done.stderr
    done = lint("caddy", "fmt", DEPLOY / "caddy" / "Caddyfile")
    assert (done.returncode, done.stdout) == (0, (DEPLOY / "caddy" / "Caddyfile").read_text())


@pytest.fixture(scope="module")
def manifests(tmp_path_factory):
    """Return what kustomize makes of the example, with a filled-in secret."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on this machine")
    copy = tmp_path_factory.mktemp("kustomize") / "kubernetes"
    shutil.copytree(DEPLOY / "kubernetes", copy)
    example = copy / "overlays" / "example"
    shutil.copy(example / "example-secret.env", example / "secret.env")
    done = subprocess.run(["kubectl", "kustomize", example], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    made = copy / "made.yaml"
    made.write_text(done.stdout)
    return made


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_cluster_of_postgresql_is_valid(manifests, version):
    cluster = manifests.parent / "cluster"
    done = subprocess.run(["kubectl", "kustomize", cluster], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    made = manifests.with_name("cluster.yaml")
    made.write_text(done.stdout)
    done = lint("kubernetes-validate", "--strict", "--kubernetes-version", version, made)
    assert done.returncode == 0, done.stdout + done.stderr


def test_haproxy_takes_the_file_of_the_cluster(tmp_path):
    file = tmp_path / "haproxy.cfg"  # its hosts exist in the composition alone
    text = (DEPLOY / "cluster" / "haproxy.cfg").read_text()
    file.write_text(re.sub(r" postgres-\d:5432", " 127.0.0.1:5432", text))
    done = subprocess.run(
        [program("haproxy"), "-c", "-f", file], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_output_of_kustomize_is_valid(manifests, version):
    done = lint("kubernetes-validate", "--strict", "--kubernetes-version", version, manifests)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_output_of_kustomize_is_consistent(manifests):
    made = list(yaml.safe_load_all(manifests.read_text()))
    named = {(each["kind"], each["metadata"]["name"]) for each in made}
    for each in made:
        if each["kind"] != "Deployment":
            continue
        pod = each["spec"]["template"]
        assert each["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "muniment", "the network policy selects it"
        for container in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
            assert container["image"] == "muniment:0.1.0"
            for source in container["envFrom"]:
                ((kind, reference),) = source.items()
                wanted = {"configMapRef": "ConfigMap", "secretRef": "Secret"}[kind]
                assert (wanted, reference["name"]) in named, "a generated name that is not followed"


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """Yield what the build stage of the Containerfile installs."""
    if lacks := confined.missing():
        pytest.skip(lacks)
    folder = tmp_path_factory.mktemp("image")
    yield confined.build(folder)
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def started(image, data, *arguments):
    port = free_port()
    data.mkdir()
    with (data.parent / "image.log").open("ab") as log:
        running = subprocess.Popen(
            confined.command(
                image, data, "serve", "--host", "127.0.0.1", "--port", str(port), *arguments, log_format="text"
            ),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield port, running
    finally:
        running.terminate()
        running.wait(30)


def status(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_the_image_serves_as_an_unknown_user_from_a_root_that_it_cannot_write(image, tmp_path):
    data = tmp_path / "data"
    with started(image, data, "--demo") as (port, _):
        wait_until(lambda: status(port, "/readyz") == 200, within_s=240, what="the image being ready")
        wait_until(lambda: status(port, "/api/v1/companies/quillmere") == 200, within_s=120, what="the demo registry")
        assert status(port, "/companies") == 200
        assert status(port, "/docs") == 200
        owners = {file.stat().st_uid for file in data.rglob("*")}
        assert owners == {confined.USER}
        asked = re.search(r'"-c", "(import urllib[^"]+)"', (DEPLOY / "Containerfile").read_text())
        assert asked
        probe = asked[1].replace(":8000/", f":{port}/")
        assert subprocess.run([sys.executable, "-c", probe], check=False, timeout=60).returncode == 0
        command = asked[1].replace(":8000/", f":{free_port()}/")
        told = subprocess.run([sys.executable, "-c", command], check=False, timeout=20, stderr=subprocess.DEVNULL)
        assert told.returncode != 0
    log = (tmp_path / "image.log").read_text()
    assert "Read-only file system" not in log
    assert "Traceback" not in log, log
    assert (image / "muniment" / "bin" / "muniment").exists()
    assert not list((image / "muniment").rglob("pip/__main__.py")), "pip stayed in the image"


def test_the_image_has_what_every_extra_needs(image, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    asked = confined.command(image, data, "--version")
    assert b"muniment" in subprocess.run(asked, check=True, capture_output=True, timeout=60).stdout
    found = "import stripe, openai, opentelemetry.sdk.trace, opentelemetry.exporter.otlp.proto.http"
    python = [*asked[: asked.index("/opt/muniment/bin/muniment")], "/opt/muniment/bin/python", "-c", found]
    done = subprocess.run(python, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_two_nodes_behind_the_proxy_as_it_is_configured(tmp_path):
    """Caddy with our file in front of two products: what is hidden, who the client is, and one that is killed."""
    with contextlib.ExitStack() as stack:
        nodes = [
            stack.enter_context(
                Product(tmp_path / f"node-{n}", "--demo", log_requests="on", trusted_proxies="127.0.0.0/8")
            )
            for n in (1, 2)
        ]
        for node in nodes:
            node.wait_ready(within_s=240)
        port = stack.enter_context(caddy(tmp_path, *(node.host for node in nodes)))
        assert status(port, "/metrics") == status(port, "/readyz") == 404
        assert status(port, "/api/v1/stats") == 200
        seen = " ".join(node.output() for node in nodes)
        assert '"client": "127.0.0.1"' in seen
        nodes[0].kill()
        answers = {status(port, "/api/v1/stats") for _ in range(40)}
        assert answers == {200}, "a request failed although the other node stood"
        nodes[0].start()
