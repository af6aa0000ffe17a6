"""Which instance a command uses: the folder that is named, the settings of a file, and the demo apart."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from muniment import cli, config
from muniment.cli import serving
from muniment.config import Config, ConfigError
from services.prepared import new_instance
from services.product import run


@pytest.fixture
def nothing_named(monkeypatch, tmp_path):
    """Work in an empty folder, in an environment that names no instance."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    monkeypatch.setattr(os, "environ", kept)
    monkeypatch.setattr(config, "_current", None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments, folder, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    return subprocess.run(
        [sys.executable, "-m", "muniment", *arguments],
        env={**environment, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )


@pytest.mark.parametrize("arguments", [["user", "list"], ["move", "--to", "sqlite:elsewhere"], ["worker"]])
def test_a_command_makes_no_instance_in_a_folder_that_was_not_named(nothing_named, arguments):
    done = CliRunner().invoke(cli.main, arguments)
    assert (done.exit_code, done.stdout, list(nothing_named.iterdir())) == (1, "", [])
    assert "Name its folder with --data FOLDER or MUNIMENT_DATA" in done.stderr
    assert "muniment-demo" not in done.stderr
    (nothing_named / "muniment-demo").mkdir()
    (nothing_named / "muniment-demo" / "muniment.sqlite3").touch()
    assert "The demo is there with --data muniment-demo." in CliRunner().invoke(cli.main, arguments).stderr


def test_the_option_names_the_folder_before_or_after_the_command(tmp_path):
    new_instance(tmp_path / "data", database_url="")
    run("user", "create", "ada@harbour.example", "--no-password", data=tmp_path / "data", database_url="")
    for arguments in (["user", "list", "--data", "data"], ["--data", "data", "user", "list"]):
        done = command(*arguments, folder=tmp_path, MUNIMENT_DATA="elsewhere")
        assert done.stdout.startswith("ada@harbour.example\t"), done.stderr
    assert not (tmp_path / "elsewhere").exists()


def test_every_command_takes_the_option():
    def leaves(entry):
        members = getattr(entry, "commands", None)
        return [leaf for each in members.values() for leaf in leaves(each)] if members else [entry]

    commands = [leaf for each in cli.main.all().values() for leaf in leaves(each)]
    assert len(commands) > 30
    assert all("--data" in [name for option in each.params for name in option.opts] for each in commands)


def test_the_demo_uses_a_folder_of_its_own_and_says_how_to_open_the_other(nothing_named, capsys):
    assert serving._apart().data == nothing_named / "muniment-demo"
    assert capsys.readouterr().err == ""
    assert os.environ["MUNIMENT_DATA"] == str(nothing_named / "muniment-demo")
    del os.environ["MUNIMENT_DATA"]
    (nothing_named / "muniment-data").mkdir()
    (nothing_named / "muniment-data" / "muniment.sqlite3").touch()
    config.use(Config())
    serving._apart()
    assert "open it with muniment serve or, if the demo was loaded into it before" in capsys.readouterr().err


@pytest.mark.parametrize("named", [{"MUNIMENT_DATA": "mine"}, {"MUNIMENT_DATABASE_URL": "postgresql://db/registry"}])
def test_the_demo_is_served_from_the_instance_that_is_named(nothing_named, named):
    chosen = config.use(Config(named))
    assert serving._apart() is chosen


def test_the_demo_does_not_use_the_document_store_or_the_backups_of_another_instance(nothing_named):
    os.environ["MUNIMENT_BACKUPS"] = "/srv/backups"
    done = CliRunner().invoke(cli.main, ["serve", "--demo"])
    assert (done.exit_code, list(nothing_named.iterdir())) == (1, [])
    assert done.stderr.startswith("error: The demo must not use MUNIMENT_BACKUPS of a real instance.")


def test_settings_come_from_the_file_in_the_data_folder_and_the_environment_wins(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('rate_limit = 50\nsignup = false\nallowed_hosts = ["a.example", "b.example"]\nbase_ulr = "x"\n')
    found = Config({"MUNIMENT_DATA": str(tmp_path), "MUNIMENT_RATE_LIMIT": "70"})
    assert (found.rate_limit, found.signup.is_open, found.allowed_hosts) == (70, False, ("a.example", "b.example"))
    assert [found.origins[name] for name in ("rate_limit", "signup", "currency")] == [
        "environment",
        str(file),
        "default",
    ]
    assert found.unknown == [f"base_ulr in {file} is not a setting and has no effect. Did you mean base_url?"]


def test_a_file_that_is_named_may_name_the_data_folder(tmp_path):
    file = tmp_path / "registry.toml"
    file.write_text(f'data = "{tmp_path}/data"\n')
    found = Config({"MUNIMENT_SETTINGS_FILE": str(file)})
    assert (found.data, found.is_named) == (tmp_path / "data", True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rate_limit", "is not a TOML file"),
        ("rate_limit = 1.5", "rate_limit in .* must be text, a whole number, true or false, or a list of texts"),
        ('rate_limit = "many"', "rate_limit in .* must be a whole number"),
        ('data = "elsewhere"', "cannot set data"),
        ('settings_file = "other.toml"', "cannot set settings_file"),
    ],
)
def test_a_faulty_settings_file_is_refused(tmp_path, text, says):
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(ConfigError, match=says):
        Config({"MUNIMENT_DATA": str(tmp_path)})


def test_a_settings_file_that_is_named_must_exist(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Config({"MUNIMENT_SETTINGS_FILE": str(tmp_path / "none.toml")})


def test_unknown_variables_are_named_with_the_nearest_setting_and_those_of_others_are_not():
    given = {
        "MUNIMENT_DATBASE_URL": "postgresql://db/registry",
        "MUNIMENT_ZZZ": "",
        "MUNIMENT_PORT_8000_TCP_ADDR": "10.0.0.1",
        "MUNIMENT_WORKER_SERVICE_PORT_HTTP": "80",
        "MUNIMENT_SAMPLE_DATA": "/data",
    }
    near, none = Config(given).unknown
    assert near.endswith("has no effect. Did you mean MUNIMENT_DATABASE_URL?")
    assert none == "MUNIMENT_ZZZ is not a setting and has no effect. muniment doctor lists all settings."


def test_a_command_says_which_variable_has_no_effect(tmp_path):
    done = run("feed", "show", data=new_instance(tmp_path / "data"), registry_nam="Harbour")
    assert done.stderr.startswith("Note: MUNIMENT_REGISTRY_NAM is not a setting")
    done = run("doctor", data=tmp_path / "data", registry_nam="Harbour")
    assert "WARN  settings: MUNIMENT_REGISTRY_NAM is not a setting" in done.stdout
