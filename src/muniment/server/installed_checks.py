"""Checks of what is installed or laid beside Muniment: plugins, and templates of the site folder."""

from collections.abc import Iterator

from muniment.config import Config
from muniment.plugins.loading import installed
from muniment.plugins.values import API
from muniment.server.findings import Finding, bad, good, warning


def plugin_findings(config: Config) -> Iterator[Finding]:
    """Yield a finding for each plugin; those that could not be loaded stop changes of companies and people."""
    found = installed()
    for plugin in found.plugins:
        what = f"plugin {plugin.name}"
        if plugin.fault:
            refused = "changes are refused meanwhile; mend it, or leave it out of MUNIMENT_PLUGINS"
            yield bad(what, f"was not loaded: {plugin.fault}; {refused}")
        else:
            yield good(what, f"{plugin.package or 'no package'}: {', '.join(plugin.hooks)}")
    if not found.plugins:
        off = "off" if config.plugins == ("off",) else "none is installed"
        yield good("plugins", f"{off}; the interface has version {API}")


def template_findings(config: Config) -> Iterator[Finding]:
    """Yield what is broken in the templates of the site folder, or may break; needs Django."""
    folder = config.site / "templates"
    if not folder.is_dir():
        return
    from muniment.web.site.notes import template_notes

    notes = list(template_notes(config.site))
    for note in notes:
        yield (bad if note.is_fault else warning)("template", note.says)
    if not any(note.is_fault for note in notes):
        yield good("templates", f"those in {folder} can be compiled")
