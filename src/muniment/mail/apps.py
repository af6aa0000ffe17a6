"""Django app of mail."""

from django.apps import AppConfig

from muniment.jobs.handlers import Handler, register


class MailConfig(AppConfig):
    """Mail."""

    name = "muniment.mail"
    verbose_name = "Mail"

    def ready(self) -> None:
        from muniment.mail import delivery

        register(delivery.HANDLER)
        register(Handler(kind="mail.messages_old", work=lambda _: delivery.empty_folder()), every_s=3_600)
