"""Django app of accounts."""

from django.apps import AppConfig

from muniment.jobs import handlers


class AccountsConfig(AppConfig):
    """Accounts, identified by email address."""

    name = "muniment.accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        from muniment.accounts import revocation, sessions, tokens

        revocation.watch_accounts()
        warn = handlers.Handler(kind="accounts.tokens_near_end", work=lambda _: tokens.warn_of_expiry())
        sweep = handlers.Handler(kind="accounts.tokens_ended", work=lambda _: tokens.sweep_tokens())
        ended = handlers.Handler(kind="accounts.sessions_ended", work=lambda _: sessions.sweep_sessions())
        handlers.register(warn, every_s=3_600)
        handlers.register(sweep, every_s=86_400)
        handlers.register(ended, every_s=86_400)
