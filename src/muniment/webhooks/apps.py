"""The Django app of webhooks."""

from django.apps import AppConfig

from muniment.jobs.handlers import Handler, register, watch_clock


class WebhooksConfig(AppConfig):
    """Events for URLs of operators and owners."""

    name = "muniment.webhooks"
    label = "webhooks"
    verbose_name = "Webhooks"

    def ready(self) -> None:
        from muniment.accounts import personal_data
        from muniment.accounts.keys import sealed
        from muniment.webhooks import delivering, endpoints, events
        from muniment.webhooks.models import Endpoint

        personal_data.register(endpoints.PART)
        rows, former = Endpoint.objects.all, endpoints.rows_with_former_secret
        sealed.KINDS.append(sealed.of_column("secrets of webhooks", rows, "secret", delivering.PURPOSE))
        sealed.KINDS.append(sealed.of_column("former secrets of webhooks", former, "former_secret", delivering.PURPOSE))
        register(delivering.HANDLER, every_s=events.interval_s)
        watch_clock(events.look, every_s=1.0)
        register(Handler(kind="webhooks.grown_old", work=lambda _: events.prune()), every_s=3_600)
