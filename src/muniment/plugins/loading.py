"""
Find and load the installed plugins, once in a process, when one of their hooks is first needed.

A plugin that cannot be loaded stops nothing but changes: whether it would have refused one is unknown.
"""

import logging
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NamedTuple

import pluggy

from muniment import config
from muniment.plugins.hooks import NAMES, PROJECT, Hooks
from muniment.plugins.values import API

GROUP: Final = "muniment.plugins"
log = logging.getLogger("muniment.plugins")


class HookCall(NamedTuple):
    """A hook of one plugin; *call* takes the arguments of the hook by name."""

    plugin: str
    call: Any

    def __call__(self, **arguments: Any) -> Any:
        """Return what the plugin returns, or None."""
        found = self.call(**arguments)
        return found[0] if found else None


@dataclass(slots=True)
class Plugin:
    """
    An installed plugin.

    Args:
        name: the name of its entry point.
        package: its distribution, with the version.
        hooks: those that it implements; none if it was not loaded.
        fault: why it was not loaded; empty if it was.
    """

    name: str
    package: str
    hooks: list[str] = field(default_factory=list)
    fault: str = ""


class Installed:
    """The plugins of this process."""

    def __init__(self, found: Iterator[EntryPoint] | list[EntryPoint]) -> None:
        self.plugins: list[Plugin] = []
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(Hooks)
        for entry in sorted(found, key=lambda each: (each.name, each.value)):
            plugin = Plugin(entry.name, _package(entry))
            self.plugins.append(plugin)
            try:
                plugin.hooks = self._register(entry)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a plugin's import raises
                plugin.fault = f"{type(error).__name__}: {error}" if not isinstance(error, _UnfitError) else str(error)
                log.error("plugin %s was not loaded: %s", plugin.name, plugin.fault)  # noqa: TRY400 - said by doctor too
        self._calls = {name: list(self._of(name)) for name in NAMES}

    @property
    def failed(self) -> list[Plugin]:
        """Return those that could not be loaded."""
        return [plugin for plugin in self.plugins if plugin.fault]

    def calls(self, hook: str) -> list[HookCall]:
        """Return a hook of each plugin that has it, in the order of the plugins' names."""
        return self._calls[hook]

    def _register(self, entry: EntryPoint) -> list[str]:
        if self._manager.has_plugin(entry.name):
            raise _UnfitError("another plugin has the same name")
        loaded = entry.load()
        needed = getattr(loaded, "MUNIMENT_API", API)
        if not isinstance(needed, int) or needed > API:
            raise _UnfitError(f"it needs version {needed} of the plugin interface, and this Muniment has version {API}")
        try:
            self._manager.register(loaded, entry.name)
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            if self._manager.has_plugin(entry.name):
                self._manager.unregister(name=entry.name)
            says = "; ".join(re.sub(r" in plugin <.*", "", str(error)).splitlines()[:4])
            raise _UnfitError(f"{says}; the hooks are {', '.join(NAMES)}") from None
        hooks = [each.name for each in self._manager.get_hookcallers(loaded) or ()]
        if not hooks:
            self._manager.unregister(name=entry.name)
            raise _UnfitError("it has no hook; mark its functions with @muniment.plugins.hook")
        return sorted(hooks)

    def _of(self, hook: str) -> Iterator[HookCall]:
        everyone = set(self._manager.get_plugins())
        for plugin in self.plugins:
            if hook in plugin.hooks:
                others = everyone - {self._manager.get_plugin(plugin.name)}
                yield HookCall(plugin.name, self._manager.subset_hook_caller(hook, others))


class _UnfitError(Exception):
    """The plugin does not fit this interface; the message says why."""


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else ""


_lock: Final = threading.Lock()
_installed: Installed | None = None


def installed() -> Installed:
    """Return the plugins of this process, loaded at the first call."""
    global _installed  # noqa: PLW0603 - of this process
    with _lock:
        if _installed is None:
            _installed = Installed(list(chosen(config.current().plugins)))
        return _installed


def use(found: Installed | None) -> None:
    """Make *found* the plugins of this process; None looks for the installed ones again."""
    global _installed  # noqa: PLW0603 - of this process
    with _lock:
        _installed = found


def chosen(wanted: tuple[str, ...]) -> Iterator[EntryPoint]:
    """Yield the entry points of installed plugins that the setting *wanted* lets load."""
    if wanted == ("off",):
        return
    for entry in entry_points(group=GROUP):
        if wanted == ("all",) or entry.name in wanted:
            yield entry
