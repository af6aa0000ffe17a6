"""The process that sends is killed again and again: every event arrives, in order for each listing, none invented."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from make.registry import reviewer
from muniment.accounts.models import Account
from muniment.kernel.ids import now
from muniment.webhooks.endpoints import Wanted, create_endpoint
from muniment.webhooks.events import REGISTRY_KINDS
from muniment.webhooks.models import Delivery, Event
from services import webhook_workers
from services.ports import wait_until
from services.product import environment
from services.receivers import receivers

pytestmark = pytest.mark.django_db(transaction=True)
SUBJECTS = 40


def kinds_of_trouble(site, events):
    """Return receivers by name: what each does to a request, before it works again."""

    def ok(request):
        request.send_response(204)
        request.end_headers()

    def hangs(request):
        if random.random() < 0.05:
            time.sleep(1.5)
        else:
            ok(request)

    def fails(request):
        if random.random() < 0.3:
            request.send_error(503)
        else:
            ok(request)

    def floods(request):
        request.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2_000_000)

    def comes_back(request):
        if len(site.received) < events:
            request.send_error(500)
        else:
            ok(request)

    def redirects(request):
        request.send_response(307 if random.random() < 0.2 else 204)
        request.send_header("Location", "https://other.hooks.example/")
        request.end_headers()

    return {"good": ok, "hangs": hangs, "fails": fails, "floods": floods, "back": comes_back, "redirects": redirects}


@pytest.mark.parametrize(("events", "kills"), [(60, 1), pytest.param(4_000, 50, marks=pytest.mark.proof)])
def test_every_event_is_delivered_at_least_once_and_in_order(stand, tmp_path, events, kills):
    settings = {"database_url": stand.config.database_url} if stand.config.on_postgresql else {}
    operator = Account.objects.create_user("operator@example.org", role="operator").actor("web", "pages")
    reviewer()
    with receivers(tmp_path) as site:
        trouble = kinds_of_trouble(site, events)
        endpoints = {}
        for name, answer in trouble.items():
            site.answers[f"{name}.hooks.example"] = answer
            wanted = Wanted(f"https://{name}.hooks.example/in", REGISTRY_KINDS)
            endpoints[name] = create_endpoint(operator, wanted, of_registry=True)
        Event.objects.bulk_create(
            Event(
                event_id=f"{number:026}",
                kind="review.asked",
                listing=f"listing-{number % SUBJECTS}",
                data={"number": number},
                for_registry=True,
            )
            for number in range(events)
        )
        total = events * len(trouble)
        certificate = str(tmp_path / "own.pem")
        for kill in range(kills + 1):
            process = subprocess.Popen(
                [sys.executable, webhook_workers.__file__, str(site.connection["port"]), certificate],
                env={
                    **environment(stand.folder, **settings),
                    "DJANGO_SETTINGS_MODULE": "muniment.settings",
                    "PYTHONPATH": str(Path(webhook_workers.__file__).parents[1]),
                },
                stdout=subprocess.PIPE,
            )
            try:
                assert process.stdout.readline() == b"started\n"
                seen = len(site.received)
                goal = seen + total // (kills + 2)
                if kill < kills:
                    wait_until(lambda goal=goal: len(site.received) >= goal or is_done(total), within_s=90, what="some")
                else:
                    wait_until(lambda: is_done(total), within_s=300, what="all events")
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
            # The lease of a dead worker need not pass, and endpoints that failed are tried at once.
            Delivery.objects.filter(state="waiting", next_at__isnull=False).update(next_at=now())
            release()
    for name in trouble:
        check(site, name, events)


def is_done(total):
    return Delivery.objects.filter(state="delivered").count() == total


def release():
    from muniment.jobs.models import Job

    Job.objects.filter(state="running").update(run_at=now())


def check(site, name, events):
    """Every event was sent, none that there was not, and the first time of each came in order for its listing."""
    seen = list(dict.fromkeys(event["data"]["number"] for event in site.events(f"{name}.hooks.example")))
    assert sorted(seen) == list(range(events))
    for subject in range(SUBJECTS):
        of_subject = [number for number in seen if number % SUBJECTS == subject]
        assert of_subject == sorted(of_subject)
    bodies = {json.dumps(event) for event in site.events(f"{name}.hooks.example")}
    assert len(bodies) == events
