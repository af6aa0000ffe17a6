"""The Django app of credits."""

from django.apps import AppConfig

from muniment.credits import billing
from muniment.jobs import handlers


class CreditsConfig(AppConfig):
    """The ledger of credits."""

    name = "muniment.credits"
    verbose_name = "Credits"

    def ready(self) -> None:
        from muniment.accounts import personal_data as personal_data_of_accounts
        from muniment.credits import operations, personal_data
        from muniment.scrub.checks import register

        personal_data_of_accounts.register(personal_data.PART)
        register(operations.CHECK)
        if not billing.is_on():
            return
        from muniment.credits.purchases import reconcile_purchases

        handlers.register(
            handlers.Handler(kind="credits.left_open", work=reconcile_purchases, lease_s=120, back_off_s=30),
            every_s=180,
        )
