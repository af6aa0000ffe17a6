"""Checks of what is installed or laid beside Muniment: plugins, templates of the site folder, and the kernel."""

from collections.abc import Iterator

from muniment import child_process, confinement
from muniment.config import Config
from muniment.kernel.phrases.phrase import Joined, Phrase, Verbatim
from muniment.plugins.loading import installed
from muniment.plugins.values import API
from muniment.registry.tables.reading import MEMORY_BYTES
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


def confinement_finding() -> Finding:
    """Return what the processes that read untrusted files can still reach."""
    what = "file readers"
    missing = child_process.unconfined()
    memory = Phrase("at most {megabytes:,} MB", megabytes=child_process.memory_limit(MEMORY_BYTES) >> 20)
    if not missing:
        fine = "processes that read untrusted files reach no other file, no network and no program; {memory}"
        return good(what, Phrase(fine, memory=memory))
    open_ways: list[str] = []
    if confinement.FILES in missing:
        open_ways.append(Phrase("other files (the kernel has no Landlock, or a container's profile refuses it)"))
    if confinement.NETWORK in missing or confinement.PROGRAMS in missing:
        open_ways.append(Phrase("the network and programs (no seccomp on this machine)"))
    reached = Joined("; ", open_ways)
    return warning(
        what,
        Phrase("processes that read untrusted files also reach {reached}; {memory}", reached=reached, memory=memory),
    )
