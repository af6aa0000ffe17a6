"""Django app of OAuth."""

from django.apps import AppConfig

from muniment.jobs.handlers import Handler, register


class OAuthConfig(AppConfig):
    """Connected apps and their access."""

    name = "muniment.oauth"
    label = "oauth"
    verbose_name = "Connected apps"

    def ready(self) -> None:
        from muniment.accounts import personal_data
        from muniment.accounts.keys import kept
        from muniment.accounts.security import mailing
        from muniment.oauth import clients, grants

        mailing.credential_sources.append(grants.live_names)
        personal_data.register(grants.PERSONAL_DATA)
        kept.accept_signed("retries of connected apps", grants.WINDOW)
        register(Handler(kind="oauth.grants_ended", work=lambda _: grants.sweep_grants()), every_s=86_400)
        register(Handler(kind="oauth.clients_unused", work=lambda _: clients.reap_clients()), every_s=3_600)
