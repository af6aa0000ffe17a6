"""Django app of OAuth."""

from django.apps import AppConfig

from muniment.jobs import handlers


class OAuthConfig(AppConfig):
    """Connected apps and their access."""

    name = "muniment.oauth"
    label = "oauth"
    verbose_name = "Connected apps"

    def ready(self) -> None:
        from muniment.oauth import clients, grants

        ended = handlers.Handler(kind="oauth.grants_ended", work=lambda _: grants.sweep_grants())
        unused = handlers.Handler(kind="oauth.clients_unused", work=lambda _: clients.reap_clients())
        handlers.register(ended, every_s=86_400)
        handlers.register(unused, every_s=3_600)
