"""Checks of the optional packages that the settings need."""

import click

from muniment import config
from muniment.assessments.evaluation.language_model import endpoint
from muniment.server.observability import telemetry


def require_extras(settings: config.Config) -> None:
    """Check for missing extras before any job runs or is charged."""
    if settings.model_url and (told := endpoint.lacking()):
        raise click.ClickException(told)
    if settings.otlp_url and (told := telemetry.lacking()):
        raise click.ClickException(told)
