"""The Django app of assessments."""

from django.apps import AppConfig

from muniment.jobs import handlers


class AssessmentsConfig(AppConfig):
    """Report runs and reports."""

    name = "muniment.assessments"
    verbose_name = "Assessments"

    def ready(self) -> None:
        from muniment.accounts.keys import sealed
        from muniment.accounts.personal_data import register as register_part

        # Importing these registers the jobs of a run and of the demo.
        from muniment.assessments import demo_examples, operations, personal_data, sharing  # noqa: F401
        from muniment.assessments.models import ShareLink
        from muniment.registry.people import erasing

        register_part(personal_data.PART)
        erasing.TEXTS.extend(personal_data.SEARCHED)
        links = sealed.of_column("addresses of share links", ShareLink.objects.all, "sealed", sharing.PURPOSE)
        sealed.KINDS.append(links)
        sweep = handlers.Handler(kind="assessments.grown_old", work=lambda _: operations.expire_runs())
        handlers.register(sweep, every_s=3600)
