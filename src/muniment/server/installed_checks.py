"""Checks of what is installed or laid beside Muniment: plugins, and templates of the site folder."""

from collections.abc import Iterator

from muniment.config import Config
from muniment.kernel.phrases.phrase import Joined, Phrase, Verbatim
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
            yield bad(what, Phrase("was not loaded: {fault}; {refused}", fault=plugin.fault, refused=refused))
        else:
            yield good(what, Joined(": ", (plugin.package or Phrase("no package"), Verbatim(", ".join(plugin.hooks)))))
    if not found.plugins:
        off = Phrase("off") if config.plugins == ("off",) else Phrase("none is installed")
        yield good("plugins", Phrase("{off}; the interface has version {version}", off=off, version=API))


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
        yield good("templates", Phrase("those in {folder} can be compiled", folder=folder))
