"""A mail server that hangs, refuses and returns, and killed servers: pages do not wait, and all mail arrives."""

import contextlib
import os
import random
import signal
import socket
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Self

import httpx
import pytest

from services.mail import Mailbox
from services.owner import EMAIL, PASSWORD, owned_instance
from services.ports import wait_until
from services.product import Product
from services.visitor import Visitor

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]
SIGN_UPS = 8
SLOWEST_S = 0.25
PAGES = ("/companies?page=2", "/", "/api/v1/companies?page=2", "/accounts/login/")
KILLS = 10
SECRET = "a harbour, four boats and 17 gulls"


class SilentServer:
    """Accepts connections at *port* and never says a word."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))

    def stop(self) -> None:
        self._socket.close()


class StoppingMailbox(Mailbox):
    """Stops *process* before its first answer of 250, so that the process cannot end the job of the message."""

    def __init__(self) -> None:
        super().__init__()
        self.process = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        told = await super().handle_DATA(server, session, envelope)
        if self.process:
            os.kill(self.process, signal.SIGSTOP)
            self.process = 0
        return told


def sign_up(url: str, address: str, client: str = "") -> float:
    """Create an account, from the address of a *client* behind a proxy, and return how long the answer took."""
    with Visitor(url, {}) as person:
        if client:
            person.web.headers["X-Forwarded-For"] = client
        person.get("/accounts/signup/")
        began = time.monotonic()
        person.post("/accounts/signup/", email=address, password1=SECRET, password2=SECRET)
        return time.monotonic() - began


def ids_by_recipient(mailbox: Mailbox) -> dict[str, list[str]]:
    found = defaultdict(list)
    for message in list(mailbox.messages):
        found[str(message["To"])].append(str(message["Message-ID"]))
    return found


class Watch:
    """Opens pages one after another while it runs; ``slowest`` is the longest time of one."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._done = threading.Event()
        self.slowest, self.count = 0.0, 0
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._done.is_set():
            for path in PAGES:
                began = time.monotonic()
                assert self._product.get(path).status == 200
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.count += 1
            time.sleep(0.05)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


@pytest.mark.parametrize("fault", ["hangs", "refuses"])
def test_no_page_waits_for_the_mail_server_and_every_mail_arrives_when_it_returns(tmp_path, fault):
    mailbox = Mailbox()
    with owned_instance(tmp_path, mail_url=mailbox.url, trusted_proxies="127.0.0.1") as (product, _):
        for path in PAGES:
            product.get(path)
        sign_up(product.url, "warm@harbour.example")  # forms and the hash of passwords are loaded
        away = SilentServer(mailbox.port) if fault == "hangs" else None
        addresses = [f"person-{number}@harbour.example" for number in range(SIGN_UPS)]
        clients = [f"192.0.2.{number}" for number in range(SIGN_UPS)]
        # Their hashes take 0.3 s of CPU time each, so this part depends on the machine.
        with Watch(product) as busy, ThreadPoolExecutor(SIGN_UPS) as pool:
            sign_ups = list(pool.map(partial(sign_up, product.url), addresses, clients))
        with Watch(product) as watch:
            time.sleep(25)  # the length of the outage is the point
        if away is not None:
            away.stop()
        with mailbox:
            wait_until(
                lambda: ids_by_recipient(mailbox).keys() >= {*addresses, "warm@harbour.example"},
                within_s=90,
                what="all mail",
            )
            product.stop()
        print(  # noqa: T201 - the figures, for who runs it with -s
            f"\n{fault}: slowest of {watch.count} pages {watch.slowest * 1000:.0f} ms,"
            f" slowest of {SIGN_UPS} sign-ups at once {max(sign_ups):.2f} s, and of {busy.count} pages meanwhile"
            f" {busy.slowest * 1000:.0f} ms"
        )
        assert watch.slowest < SLOWEST_S
        found = ids_by_recipient(mailbox)
        assert {address: len(found[address]) for address in addresses} == dict.fromkeys(addresses, 1)


def test_a_server_killed_between_the_answer_and_the_commit_sends_the_same_message_again(tmp_path):
    with StoppingMailbox() as mailbox, owned_instance(tmp_path, mail_url=mailbox.url) as (product, _):
        mailbox.process = product.pid
        joining = threading.Thread(target=_try_to_sign_up, args=(product.url,))
        joining.start()
        wait_until(lambda: len(mailbox.messages) == 1, within_s=30, what="the first delivery")
        time.sleep(0.5)  # the 250 is on its way to the stopped process
        product.kill()
        joining.join()
        product.start()
        wait_until(lambda: len(mailbox.messages) == 2, within_s=60, what="the second delivery")
        first, second = mailbox.messages
        assert first["Message-ID"] == second["Message-ID"]
        assert first["To"] == second["To"]


def _try_to_sign_up(url: str) -> None:
    with contextlib.suppress(httpx.HTTPError, AssertionError):
        sign_up(url, "once@harbour.example")


class Newcomers:
    """Signs people up and invites others until the server is killed; ``acknowledged`` are their addresses."""

    def __init__(self, product: Product, slug: str, owner: Visitor) -> None:
        self._product, self._slug, self._owner = product, slug, owner
        self.acknowledged: list[str] = []

    def until_killed(self, number: int, after_s: float) -> None:
        """Kill the server *after_s* after it has acknowledged a change."""
        before = len(self.acknowledged)
        stop = threading.Event()
        threads = [
            threading.Thread(target=self._sign_up, args=(number, stop)),
            threading.Thread(target=self._invite, args=(number,)),
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(self.acknowledged) > before, within_s=60, what="an acknowledged change")
        time.sleep(after_s)  # the moment of the kill is the point
        stop.set()
        self._product.kill()
        for thread in threads:
            thread.join(60)

    def _sign_up(self, kill: int, stop: threading.Event) -> None:
        for number in range(1000):
            address = f"new-{kill}-{number}@harbour.example"
            try:
                sign_up(self._product.url, address)
            except (httpx.HTTPError, AssertionError):
                if stop.is_set():
                    return
            else:
                self.acknowledged.append(address)

    def _invite(self, kill: int) -> None:
        with contextlib.suppress(httpx.HTTPError, AssertionError):
            for number in range(2):
                address = f"guest-{kill}-{number}@harbour.example"
                self._owner.post(f"/manage/companies/{self._slug}/invite", email=address)
                self.acknowledged.append(address)


def test_ten_kills_lose_no_mail_of_sign_ups_and_invitations(tmp_path):
    """Whatever was acknowledged is mailed; what arrives twice has one Message-ID."""
    chance = random.Random(19)
    with (
        Mailbox() as mailbox,
        owned_instance(tmp_path, mail_url=mailbox.url) as (product, slug),
        Visitor(product.url, {}) as owner,
    ):
        owner.post("/accounts/login/", login=EMAIL, password=PASSWORD)
        newcomers = Newcomers(product, slug, owner)
        for kill in range(KILLS):
            newcomers.until_killed(kill, chance.uniform(0, 1.5))
            product.start()
            product.wait_ready(within_s=60)
        acknowledged = newcomers.acknowledged
        wait_until(
            lambda: set(acknowledged) <= ids_by_recipient(mailbox).keys(), within_s=120, what="all acknowledged mail"
        )
    found = ids_by_recipient(mailbox)
    twice = {address for address, ids in found.items() if len(ids) > 1}
    guests = sum(address.startswith("guest") for address in acknowledged)
    print(  # noqa: T201 - the figures, for who runs it with -s
        f"\n{KILLS} kills: {len(acknowledged)} acknowledged mails ({guests} invitations), 0 lost, {len(twice)} twice"
    )
    assert len(acknowledged) > KILLS
    assert guests > 0
    assert {address: len(set(found[address])) for address in acknowledged} == dict.fromkeys(acknowledged, 1)
