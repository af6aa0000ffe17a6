"""
A small Stripe on loopback: the API of Checkout Sessions, the payment page, and signed events.

Written from Stripe's documentation, without its library: forms with brackets, idempotency keys that refuse another
body, unknown parameters, ids, and events signed over time and body.
"""

import hashlib
import hmac
import itertools
import json
import re
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from services.ports import free_port

KEY = "sk_test_51HarbourKeyOfTheTests"
WEBHOOK_SECRET = "whsec_of_the_tests_alone"
KNOWN = {
    *("adaptive_pricing", "cancel_url", "client_reference_id", "expires_at", "line_items", "metadata", "mode"),
    *("payment_intent_data", "submit_type", "success_url"),
}
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Payment</title><h1>{title}</h1><p>{amount} {currency}</p>
<form method="post"><button name="how" value="card">Pay</button>
<button name="how" value="bank">Pay by bank debit</button>
</form><p><a href="{cancel_url}">Back</a></p></html>"""


class Refused(Exception):  # noqa: N818 - an answer
    """An error in Stripe's format."""

    def __init__(self, status: int, code: str, message: str, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"type": kind, "code": code, "message": message}}


class Delivery(NamedTuple):
    """A sent event and the status of the response; 0 if there was none."""

    event: dict[str, Any]
    status: int
    answer: bytes


def signed(body: bytes, *, secret: str = WEBHOOK_SECRET, age_s: float = 0) -> str:
    """Return the Stripe-Signature header of *body*."""
    moment = int(time.time() - age_s)
    mac = hmac.new(secret.encode(), b"%d." % moment + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={mac},v0={'0' * 64}"


def tree(body: str) -> dict[str, Any]:
    """Parse a form whose names have brackets: ``a[b][0]=c``. Lists become dicts by position."""
    found: dict[str, Any] = {}
    for name, value in parse_qsl(body, keep_blank_values=True, strict_parsing=True):
        *way, last = re.findall(r"[^\[\]]+", name)
        place = found
        for step in way:
            place = place.setdefault(step, {})
        place[last] = value
    return found


class Stripe:
    """
    The account; ``webhook`` receives its events, unless empty.

    ``is_down`` lets every API request fail; the next ``drops`` responses are lost. ``asked`` holds method, path and
    form of each request, and ``said_of_itself`` what the client last reported about its machine.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.webhook = ""
        self.is_down = False
        self.drops = 0
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.said_of_itself = ""
        self.sessions: dict[str, dict[str, Any]] = {}
        self.payments: dict[str, dict[str, Any]] = {}
        self.deliveries: list[Delivery] = []
        self._answered: dict[str, tuple[str, dict[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        account = self

        class Answers(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                account.answer(self, "")

            def do_POST(self) -> None:
                account.answer(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Answers)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    # ------------------------------------------------------------------ HTTP

    def answer(self, request: BaseHTTPRequestHandler, body: str) -> None:
        path = urlsplit(request.path).path
        if path.startswith("/c/pay/"):
            self._page(request, path.rpartition("/")[2], body)
            return
        if path == "/favicon.ico":
            _send(request, 204, b"", {})
            return
        headers = {"Request-Id": f"req_{next(self._numbers):08d}", "Content-Type": "application/json"}
        try:
            status, found = 200, self._api(request, path, body)
        except Refused as refused:
            status, found = refused.status, refused.body
        if self.drops:
            self.drops -= 1
            request.close_connection = True
            return
        _send(request, status, json.dumps(found).encode(), headers)

    def _api(self, request: BaseHTTPRequestHandler, path: str, body: str) -> dict[str, Any]:
        form = tree(body or urlsplit(request.path).query) if body or urlsplit(request.path).query else {}
        self.asked.append((request.command, path, form))
        self.said_of_itself = str(request.headers.get("X-Stripe-Client-User-Agent"))
        if self.is_down:
            raise Refused(500, "", "Stripe is down.", "api_error")
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(401, "", "Invalid API Key provided: sk_test_********ests")
        if (request.command, path) == ("POST", "/v1/checkout/sessions"):
            return self._once(str(request.headers.get("Idempotency-Key")), body, form)
        session_id = path.removeprefix("/v1/checkout/sessions/")
        if request.command != "GET" or session_id not in self.sessions:
            raise Refused(404, "resource_missing", f"No such checkout.session: {session_id}")
        session = self.sessions[session_id]
        if form.get("expand", {}).get("0") == "payment_intent" and session["payment_intent"]:
            return {**session, "payment_intent": self.payments[session["payment_intent"]]}
        return session

    def _once(self, key: str, body: str, form: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            if key not in self._answered:
                self._answered[key] = body, self._made(form)
            first, made = self._answered[key]
        if first != body:
            raise Refused(400, "", "Keys for idempotent requests can only be used with…", "idempotency_error")
        return made

    def _made(self, form: dict[str, Any]) -> dict[str, Any]:
        if unknown := set(form) - KNOWN:
            raise Refused(400, "parameter_unknown", f"Received unknown parameters: {', '.join(sorted(unknown))}")
        if not 1800 - 60 <= int(form["expires_at"]) - time.time() <= 86400:
            raise Refused(400, "", "The `expires_at` timestamp must be between 30 minutes and 24 hours from now.")
        item = form["line_items"]["0"]
        amount = int(item["price_data"]["unit_amount"]) * int(item["quantity"])
        if amount < 50:
            raise Refused(400, "amount_too_small", "The Checkout Session's total amount must convert to at least 50.")
        session_id = f"cs_test_{next(self._numbers):050d}"
        self.sessions[session_id] = {
            "id": session_id,
            "object": "checkout.session",
            "amount_total": amount,
            "currency": item["price_data"]["currency"],
            "client_reference_id": form["client_reference_id"],
            "metadata": form["metadata"],
            "mode": form["mode"],
            "payment_intent": None,
            "payment_status": "unpaid",
            "status": "open",
            "success_url": form["success_url"],
            "cancel_url": form["cancel_url"],
            "expires_at": int(form["expires_at"]),
            "url": f"{self.url}/c/pay/{session_id}",
            "_title": item["price_data"]["product_data"]["name"],
            "_payment_metadata": form["payment_intent_data"]["metadata"],
        }
        return self.sessions[session_id]

    def _page(self, request: BaseHTTPRequestHandler, session_id: str, body: str) -> None:
        session = self.sessions.get(session_id)
        if session is None or session["status"] != "open":
            _send(request, 404, b"This page has expired.", {"Content-Type": "text/plain"})
        elif request.command == "POST":
            self.pay(session_id, how=dict(parse_qsl(body))["how"])
            _send(request, 303, b"", {"Location": session["success_url"]})
        else:
            amount = f"{session['amount_total'] / 100:.2f}"
            text = PAGE.format(
                title=session["_title"],
                amount=amount,
                currency=session["currency"].upper(),
                cancel_url=session["cancel_url"],
            )
            _send(request, 200, text.encode(), {"Content-Type": "text/html; charset=utf-8"})

    # ------------------------------------------------------------------ payments

    def pay(self, session_id: str, *, how: str = "card") -> dict[str, Any]:
        """Pay, by card at once, by *bank* later; return the event."""
        session = self.sessions[session_id]
        payment_id = f"pi_{next(self._numbers):024d}"
        status = "succeeded" if how == "card" else "processing"
        self.payments[payment_id] = {"id": payment_id, "object": "payment_intent", "status": status}
        session.update(
            status="complete", payment_intent=payment_id, payment_status="paid" if how == "card" else "unpaid"
        )
        return self.tell("checkout.session.completed", session)

    def bank_says(self, session_id: str, *, good: bool) -> dict[str, Any]:
        """Complete a bank payment; return the event."""
        session = self.sessions[session_id]
        payment = self.payments[session["payment_intent"]]
        payment["status"] = "succeeded" if good else "requires_payment_method"
        session["payment_status"] = "paid" if good else "unpaid"
        return self.tell(f"checkout.session.async_payment_{'succeeded' if good else 'failed'}", session)

    def expire(self, session_id: str) -> dict[str, Any]:
        """Expire an unpaid session; return the event."""
        self.sessions[session_id]["status"] = "expired"
        return self.tell("checkout.session.expired", self.sessions[session_id])

    def refund(self, session_id: str, amount_minor: int) -> dict[str, Any]:
        """Refund an additional amount; return the event."""
        session = self.sessions[session_id]
        session["_refunded"] = session.get("_refunded", 0) + amount_minor
        charge = {
            "id": f"ch_of_{session['payment_intent']}",
            "object": "charge",
            "amount": session["amount_total"],
            "amount_refunded": session["_refunded"],
            "currency": session["currency"],
            "metadata": session["_payment_metadata"],
            "payment_intent": session["payment_intent"],
        }
        return self.tell("charge.refunded", charge)

    def dispute(self, session_id: str, what: str = "funds_withdrawn") -> dict[str, Any]:
        """Withdraw the whole payment in a dispute, or return it with ``funds_reinstated``; return the event."""
        session = self.sessions[session_id]
        dispute = {
            "id": f"du_{next(self._numbers):024d}",
            "object": "dispute",
            "amount": session["amount_total"],
            "currency": session["currency"],
            "metadata": {},
            "payment_intent": session["payment_intent"],
        }
        return self.tell(f"charge.dispute.{what}", dispute)

    # ------------------------------------------------------------------ events

    def tell(self, kind: str, concerned: dict[str, Any]) -> dict[str, Any]:
        """Create an event, send it to the webhook, and return it."""
        shown = {name: value for name, value in concerned.items() if not name.startswith("_")}
        event = {
            "id": f"evt_{next(self._numbers):024d}",
            "object": "event",
            "api_version": "2026-10-28.harbour",
            "created": int(time.time()),
            "data": {"object": json.loads(json.dumps(shown))},
            "livemode": False,
            "type": kind,
        }
        if self.webhook:
            self.send(event)
        return event

    def send(self, event: dict[str, Any]) -> int:
        """Send an event, possibly again; return the status of the response."""
        body = json.dumps(event, indent=2).encode()
        headers = {"Content-Type": "application/json; charset=utf-8", "Stripe-Signature": signed(body)}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(self.webhook, data=body, headers=headers), timeout=20
            ) as answer:
                delivery = Delivery(event, answer.status, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                delivery = Delivery(event, error.code, error.read())
        self.deliveries.append(delivery)
        return delivery.status

    def settings(self) -> dict[str, str]:
        """Return the settings of a product that sells with this account."""
        return {
            "credit_packs": "100=900,500=4000",
            "stripe_secret_key": KEY,
            "stripe_webhook_secret": WEBHOOK_SECRET,
            "stripe_checkout_url": self.url,
        }

    def constants(self) -> dict[str, Any]:
        """Return the constants of a product that asks this account."""
        return {"muniment.credits.billing.API_BASE": self.url}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


def _send(request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
