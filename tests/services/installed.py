"""Programs of Debian that proofs start; a missing one ends the proof with the way to install it."""

import shutil

PACKAGES = {
    "etcd": "etcd-server",
    "haproxy": "haproxy",
    "pgbouncer": "pgbouncer",
    "caddy": "caddy",
    "varnishd": "varnish",
    "clamd": "clamav-daemon",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "nft": "nftables",
    "cc": "gcc libc6-dev",
    "podman": "podman",
    "runc": "runc",
    "debootstrap": "debootstrap",
}


def program(name: str) -> str:
    """
    Return the path of a program.

    Raises:
        AssertionError: it is not installed; names the package.
    """
    found = shutil.which(name, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    assert found, f"{name} is not installed: run `make prove` as root, or `apt-get install {PACKAGES[name]}`"
    return found
