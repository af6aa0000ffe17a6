"""Django app of accounts."""

from django.apps import AppConfig

from muniment.jobs.handlers import Handler, register, watch_clock, when_set_back


class AccountsConfig(AppConfig):
    """Accounts, identified by email address."""

    name = "muniment.accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        from django.core.cache import cache

        from muniment.accounts import personal_data, revocation, sessions, sign_up, tokens
        from muniment.accounts.keys import kept, keyring
        from muniment.accounts.security import effective_settings, log, mailing, signals, step_up
        from muniment.mail import places
        from muniment.store.database import counter_cache

        personal_data.register(personal_data.ACCOUNT_PART)
        kept.register(effective_settings.KEPT)
        places.recorded = effective_settings.recorded_base_url
        reporter = keyring.Reporter()
        watch_clock(reporter.look, reporter.leave)
        when_set_back(cache.clear)  # counts of rate limits that would last until the former time is reached again
        revocation.watch_accounts()
        signals.watch()
        mailing.credential_sources.append(tokens.live_names)
        register(Handler(kind="accounts.security_events_ended", work=lambda _: log.sweep_events()), every_s=86_400)
        step_up.watch_sign_ins()
        register(
            Handler(kind="accounts.deletions_due", work=lambda _: personal_data.delete_due_accounts()), every_s=3_600
        )
        register(Handler(kind="accounts.tokens_near_end", work=lambda _: tokens.warn_of_expiry()), every_s=3_600)
        register(Handler(kind="accounts.tokens_ended", work=lambda _: tokens.sweep_tokens()), every_s=86_400)
        register(Handler(kind="accounts.sign_ups_ended", work=lambda _: sign_up.forget_unconfirmed()), every_s=3_600)
        register(Handler(kind="accounts.counts_ended", work=lambda _: counter_cache.sweep()), every_s=3_600)
        register(Handler(kind="accounts.sessions_ended", work=lambda _: sessions.sweep_sessions()), every_s=3_600)
