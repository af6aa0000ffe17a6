"""Health checks: at their exact paths, and on a listener of their own if one is configured."""

import http.client

import pytest

from contract.shapes import check_error
from make.hostile import HEALTH_CHECKS
from services.ports import free_port, wait_until
from services.prepared import new_instance
from services.product import Product, run
from services.raw import exchange, status


def code(port, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.requirement("ops.health")
@pytest.mark.parametrize("form", HEALTH_CHECKS)
def test_another_form_of_the_path_of_a_health_check_is_not_found(demo, form):
    (answer,) = exchange(demo.port, f"GET {form} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert status(answer) == 404, answer
    assert b"muniment_requests_total" not in answer


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_separate_listener_alone_serves_readiness_and_metrics(tmp_path, workers):
    admin = free_port()
    data = new_instance(tmp_path / "data")
    with Product(data, "--workers", workers, admin_listen=f"127.0.0.1:{admin}") as product:
        # Either process may answer, and the second one is ready later.
        wait_until(
            lambda: all(code(admin, "/readyz?writes") == 200 for _ in range(10)),
            within_s=60,
            what="readiness of both processes at the separate listener",
        )
        assert code(admin, "/readyz?writes") == code(admin, "/metrics") == code(admin, "/healthz") == 200
        assert code(admin, "/readyz/") == code(admin, "/metrics%2f") == code(admin, "/api/v1/stats") == 404
        assert code(admin, "/") == code(admin, "/accounts/login/") == code(admin, "/api/mcp", "POST") == 404
        assert code(admin, "/metrics", "POST") == 405
        for answer in product.get_of_each("/metrics") + product.get_of_each("/readyz"):
            check_error(answer, 404, "not_found")
        assert product.get("/healthz").status == product.get("/api/v1/stats").status == product.get("/").status == 200


def test_health_checks_of_one_address_are_limited_without_using_up_its_requests(tmp_path):
    with Product(new_instance(tmp_path / "data"), "--workers", "1", rate_limit="60", rate_burst="5") as product:
        answers = [product.get("/metrics").status for _ in range(110)]
        assert answers[:50] == [200] * 50
        assert 429 in answers
        assert product.get("/api/v1/stats").status == 200


def test_an_address_that_cannot_be_listened_on_is_refused_with_the_setting(tmp_path, demo):
    done = run("serve", "--port", str(free_port()), data=tmp_path / "data", check=False, admin_listen=demo.host)
    assert done.returncode == 1
    assert "change MUNIMENT_ADMIN_LISTEN" in done.stderr
    assert "Traceback" not in done.stderr
