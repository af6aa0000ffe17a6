"""Django app of mail."""

from django.apps import AppConfig

from muniment.jobs.handlers import register


class MailConfig(AppConfig):
    """Mail."""

    name = "muniment.mail"
    verbose_name = "Mail"

    def ready(self) -> None:
        from muniment.mail import delivery

        register(delivery.HANDLER)
