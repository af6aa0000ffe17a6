"""Django's settings for the templates of the site folder; imports nothing of Django."""

from pathlib import Path
from typing import Any


def template_settings(site: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of Django's TEMPLATES: with the templates of the site folder, if there is one."""
    folder = site / "templates"
    if not folder.is_dir():
        return {"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": options}
    here = "muniment.web.site.loading"
    loaders = [(f"{here}.SiteLoader", [folder]), "django.template.loaders.app_directories.Loader"]
    cached = [("django.template.loaders.cached.Loader", loaders)]
    return {"BACKEND": f"{here}.SiteTemplates", "OPTIONS": {**options, "loaders": cached}}
