"""The Django app of searches."""

from django.apps import AppConfig

from muniment.jobs.handlers import Handler, register


class SearchesConfig(AppConfig):
    """The searches that accounts save, and mail about listings and searches."""

    name = "muniment.searches"
    label = "searches"
    verbose_name = "Searches"

    def ready(self) -> None:
        from muniment.accounts.keys import kept
        from muniment.accounts.personal_data import register as register_part
        from muniment.mail import delivery
        from muniment.registry.people import erasing
        from muniment.registry.publishing import redaction
        from muniment.searches import digests, personal_data, subscriptions
        from muniment.searches.models import Subscription

        register_part(personal_data.PART)
        kept.register(subscriptions.SECRET)
        kept.accept_signed("links to subscriptions", subscriptions.MINE_FOR)
        delivery.outcomes[digests.MESSAGE] = subscriptions.note_outcome
        redaction.also_forget.append(subscriptions.forget_person)
        erasing.TEXTS.append(erasing.Searched(Subscription, "subscription", lambda _: ("", "/operate/subscriptions")))
        register(digests.HANDLER, every_s=digests.EVERY_S)
        register(Handler(kind="searches.requests_ended", work=lambda _: subscriptions.prune()), every_s=3_600)
