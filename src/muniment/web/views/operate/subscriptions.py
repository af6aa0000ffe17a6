"""Updates that visitors get by email: how many there are, and those of one address, which can be ended."""

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy, ngettext

from muniment.languages.writing import number
from muniment.searches import subscriptions
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.once import once
from muniment.web.views.operate.frame import operate_page
from muniment.web.views.public.updates import shown

HOME: Final = "/operate/subscriptions"
TOPICS: Final = {
    "company": gettext_lazy("Subscriptions to companies"),
    "person": gettext_lazy("Subscriptions to people"),
    "companies": gettext_lazy("Subscriptions to company searches"),
    "people": gettext_lazy("Subscriptions to people searches"),
    "frameworks": gettext_lazy("Subscriptions to framework searches"),
}


@operator()
def home(request: HttpRequest) -> HttpResponse:
    """Count the subscriptions, and list those of an address. The address is sent by a form, so no log has it."""
    actor = actor_of(request)
    email = request.POST.get("email", "").strip()
    counts = subscriptions.count_subscriptions(actor)
    rows = subscriptions.list_subscriptions(actor, email) if email else []
    context = {
        "is_offered": subscriptions.is_offered(),
        "counts": counts,
        "topics": [(label, counts.by_topic[topic]) for topic, label in TOPICS.items() if topic in counts.by_topic],
        "email": email,
        "rows": [shown(row) for row in rows],
    }
    return operate_page(request, "subscriptions", "operate/subscriptions.html", context)


@operator("POST")
@once
def end(request: HttpRequest) -> HttpResponse:
    """Delete an address with its subscriptions."""
    count = subscriptions.end_subscriptions(actor_of(request), request.POST.get("email", ""))
    said = ngettext("%(count)s subscription ended.", "%(count)s subscriptions ended.", count)
    messages.success(request, f"{said % {'count': number(count)}} {gettext('The address is deleted.')}")
    return HttpResponseRedirect(HOME)
