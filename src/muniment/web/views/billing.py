"""Webhook of the payment provider; responses are JSON."""

from typing import Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from muniment.credits.purchases import receive_event
from muniment.kernel.problems import MethodNotAllowed, Problem, TooLarge

MAX_BODY_BYTES: Final = 256 << 10
"""Many times the size of an event with everything in it."""


@csrf_exempt  # the signature authenticates the sender; no cookie is read
def stripe_webhook(request: HttpRequest) -> HttpResponse:
    """Receive one signed event. An event that concerns no purchase gets 200, so that it is not retried."""
    try:
        if request.method != "POST":
            raise MethodNotAllowed(str(request.method), "POST")
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BODY_BYTES:
            raise TooLarge("An event is at most 256 KB.", "Send the event unchanged.")
        outcome = receive_event(request.body, request.headers.get("Stripe-Signature", ""))
    except Problem as problem:
        return JsonResponse(problem.to_wire(), status=problem.status, headers=problem.headers)
    return JsonResponse({"data": {"outcome": outcome}})
