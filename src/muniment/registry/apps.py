"""The Django app of the registry."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from muniment.jobs.handlers import Handler, register, watch_clock


def _make_published_tables(using: str, **_: Any) -> None:
    from muniment.registry.publishing import publisher

    publisher.create_tables(using)


class RegistryConfig(AppConfig):
    """Companies, people and frameworks."""

    name = "muniment.registry"
    verbose_name = "Registry"

    def ready(self) -> None:
        """Create the tables of published documents with the others, and register the jobs."""
        import muniment.registry.company.funding
        import muniment.registry.imports.stages
        import muniment.registry.inbox.checks
        import muniment.registry.inbox.reviewers
        import muniment.registry.logos.stored
        import muniment.registry.people.erasing  # noqa: F401 - importing it registers them
        from muniment.accounts import personal_data
        from muniment.accounts.keys import kept, sealed
        from muniment.mail import html
        from muniment.plugins import loading
        from muniment.registry import own_data
        from muniment.registry.company import access, pictures
        from muniment.registry.declared import applying, current
        from muniment.registry.inviting.accounts import forget_ended
        from muniment.registry.people import suppression
        from muniment.registry.publishing import later, publisher, republishing, signed_log, upgrade, witnesses
        from muniment.registry.settings.mail_mark import declared_mark
        from muniment.registry.verification.proofs import CODE_VALID_FOR, repeat_proofs
        from muniment.scrub import checks
        from muniment.webhooks import events

        html.declared_mark = declared_mark
        personal_data.register(own_data.PART)
        kept.register(suppression.SECRET)
        kept.accept_signed("codes that prove a domain", CODE_VALID_FOR)
        sealed.KINDS.append(
            sealed.of_column("keys of the public log", signed_log.sealed_rows, "sealed", signed_log.PURPOSE)
        )
        checks.register(republishing.CHECK)
        checks.register(republishing.LOG)
        checks.register(pictures.CHECK)
        register(upgrade.HANDLER)
        register(later.HANDLER, every_s=later.EVERY_S)
        register(witnesses.HANDLER)
        watch_clock(witnesses.look)
        register(applying.HANDLER)
        watch_clock(current.look)
        register(publisher.PLUGIN_HANDLER)
        events.use(events.Feed(publisher.feed_head, access.owners_of))
        loading.installed()  # before a change needs them, and its transaction waits for their import
        register(Handler(kind="registry.proofs_aged", work=lambda _: repeat_proofs(), lease_s=120), every_s=3_600)
        register(Handler(kind="registry.invitations_ended", work=lambda _: forget_ended()), every_s=86_400)
        post_migrate.connect(_make_published_tables, sender=self, dispatch_uid="muniment.registry.published")
