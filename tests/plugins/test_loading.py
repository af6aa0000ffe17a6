"""Plugins are loaded once; what does not fit is not loaded and says why, and the others are."""

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from muniment import cli, config
from muniment.config import Config, ConfigError
from muniment.plugins import API, Refusal, hook, loading
from muniment.server.doctor import plugin_findings
from services.plugins import plugged, steward


class Careful:
    @hook
    def validate_change(self):
        return [Refusal(field="name", message="is not careful")]


class Misspelt:
    @hook
    def validate_chnage(self, change):
        pass


class Curious:
    @hook
    def published(self, publication, weather):
        pass


class Silent:
    pass


@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        (Misspelt(), "unknown hook 'validate_chnage'"),
        (Curious(), "weather"),
        (Silent(), "it has no hook"),
        (ImportError("no module named tides"), "ImportError: no module named tides"),
        (SystemExit(3), "SystemExit: 3"),
        (SimpleNamespace(MUNIMENT_API=API + 1), f"it needs version {API + 1} of the plugin interface"),
        (SimpleNamespace(MUNIMENT_API="1"), "it needs version 1"),
    ],
    ids=["misspelt", "argument", "silent", "import", "exit", "newer", "no number"],
)
def test_a_plugin_that_does_not_fit_says_why_and_the_others_are_loaded(plugin, says, caplog):
    with plugged(good=Careful(), poor=plugin) as found:
        assert [(each.name, bool(each.fault)) for each in found.plugins] == [("good", False), ("poor", True)]
        assert says in found.failed[0].fault
        assert "plugin poor was not loaded" in caplog.text
        assert [call.plugin for call in found.calls("validate_change")] == ["good"]
        listed = CliRunner().invoke(cli.main, ["plugins"])
        assert listed.exit_code == 1
        assert "OK    good: validate_change" in listed.stdout
        assert "FAIL  poor: not loaded: " in listed.stdout
        marks = {each.what: each.mark for each in plugin_findings(Config({}))}
        assert marks == {"plugin good": "OK", "plugin poor": "FAIL"}


def test_a_hook_may_leave_out_arguments_and_is_called_for_its_plugin_alone():
    other = Careful()
    with plugged(one=Careful(), two=other) as found:
        calls = found.calls("validate_change")
        assert [call.plugin for call in calls] == ["one", "two"]
        assert [refusal.message for refusal in calls[0](change=None)] == ["is not careful"]


def test_the_same_object_behind_two_names_is_loaded_once():
    shared = Careful()
    with plugged(one=shared, two=shared) as found:
        assert [bool(each.fault) for each in found.plugins] == [False, True]


def test_every_hook_of_the_example_is_found():
    with plugged(steward=steward()) as found:
        assert found.plugins[0].hooks == sorted(
            ["validate_change", "published", "evaluators", "blob_store", "page_section", "commands"]
        )


def test_the_setting_chooses_plugins_by_name_or_none(monkeypatch):
    entries = [SimpleNamespace(name=name) for name in ("one", "two")]
    monkeypatch.setattr(loading, "entry_points", lambda **_: entries)

    def chosen(value):
        return [each.name for each in loading.chosen(Config({"MUNIMENT_PLUGINS": value}).plugins)]

    assert chosen("all") == ["one", "two"]
    assert chosen("two") == ["two"]
    assert chosen("off") == []
    with pytest.raises(ConfigError, match="MUNIMENT_PLUGINS must be all, off, or names of plugins"):
        Config({"MUNIMENT_PLUGINS": "all two"})


def test_no_plugin_is_no_fault():
    loading.use(loading.Installed([]))
    listed = CliRunner().invoke(cli.main, ["plugins"])
    assert listed.exit_code == 0
    assert "No plugins are loaded." in listed.stdout
    assert [each.mark for each in plugin_findings(config.current())] == ["OK"]


def test_the_settings_of_the_data_folder_that_a_command_names_choose_its_plugins(monkeypatch, tmp_path):
    monkeypatch.setenv("MUNIMENT_DATA", str(tmp_path / "another"))  # both are as before afterwards
    before = config.current()
    try:
        with plugged(one=Careful()):
            assert "one" in CliRunner().invoke(cli.main, ["plugins"]).stdout
            listed = CliRunner().invoke(cli.main, ["plugins", "--data", str(tmp_path)])
            assert "No plugins are loaded." in listed.stdout
    finally:
        config.use(before)
