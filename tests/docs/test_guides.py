"""The samples of the guides at /docs run as printed, on the instance that shows them."""

import html
import os
import re
import subprocess
import sys

import pytest

from muniment.web.reference.guides import GUIDES, samples
from services.node import NODE, environment, packages
from services.owner import EMAIL, owned_instance
from services.product import run

SAMPLES = [
    pytest.param(guide.key, number, id=f"{guide.key}-{number}-{sample.language}")
    for guide in GUIDES
    for number, sample in enumerate(samples(guide.key))
    if guide.key != "webhooks"
]
"""Those of the receivers run in ``tests/webhooks/test_receivers.py``: a program that listens has no end."""
WRONG = re.compile(r'"error"|"isError": ?true|Traceback')


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    with owned_instance(tmp_path_factory.mktemp("guides")) as (product, _):
        yield product, run("user", "token", EMAIL, "--name", "guides", data=product.data).stdout.strip()


def printed(page):
    """Return the samples as a reader copies them."""
    return [html.unescape(code) for code in re.findall(r"(?s)<pre [^>]*><code>(.*?)</code></pre>", page)]


def command(language, code, folder):
    if language == "sh":
        return ["bash", "-euo", "pipefail", "-c", code]
    if language == "ts":
        file = packages() / f".sample-{os.getpid()}.ts"
        file.write_text(code)
        return [NODE, "--experimental-strip-types", "--no-warnings", file]
    file = folder / "sample.py"
    file.write_text(code)
    return [sys.executable, "-W", "error", file]


@pytest.mark.parametrize(("key", "number"), SAMPLES)
def test_the_sample_runs_as_printed(instance, tmp_path, key, number):
    product, token = instance
    language = list(samples(key))[number].language
    code = printed(product.get(f"/docs/guides/{key}").body.decode())[number]
    arguments = command(language, code, tmp_path)
    try:
        done = subprocess.run(
            arguments, env=environment(REGISTRY_TOKEN=token), capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        if language == "ts":
            arguments[-1].unlink()
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    assert done.stdout.strip()
    assert not WRONG.search(done.stdout), done.stdout
