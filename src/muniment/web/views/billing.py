"""Where the payment provider tells what became of a payment. Read by a machine: answers are JSON."""

from typing import Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from muniment.credits.purchases import receive_event
from muniment.kernel.problems import MethodNotAllowed, Problem, TooLarge

MAX_BODY_BYTES: Final = 256 << 10
"""Many times the size of an event with everything in it."""


@csrf_exempt  # the signature tells who sends, and no cookie is read
def stripe_webhook(request: HttpRequest) -> HttpResponse:
    """Take one signed event. Whatever concerns nothing here is answered 200, so that it is not sent again."""
    try:
        if request.method != "POST":
            raise MethodNotAllowed(str(request.method), "POST")
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BODY_BYTES:
            raise TooLarge("An event is at most 256 KB.", "Send the event unchanged.")
        outcome = receive_event(request.body, request.headers.get("Stripe-Signature", ""))
    except Problem as problem:
        return JsonResponse(problem.to_wire(), status=problem.status, headers=problem.headers)
    return JsonResponse({"data": {"outcome": outcome}})
