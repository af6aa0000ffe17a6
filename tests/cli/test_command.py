"""The main command: errors begin with ``error:`` and say what to do."""

import pytest
from click.testing import CliRunner

from muniment import cli


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["serve", "--port", "none"], 2, "error: Invalid value for '--port'"),
        (["move", "--to", "elsewhere"], 2, "error: --to must be postgresql://user@host/database, or sqlite:FOLDER."),
        (["nonsense"], 2, "error: No such command 'nonsense'."),
        (["expert", "x"], 2, "error: No such command 'expert'. Did you mean export?"),
        (["--expert"], 2, "error: No such option '--expert'."),
    ],
)
def test_an_error_begins_with_the_word_error(arguments, status, said):
    done = CliRunner().invoke(cli.main, arguments)
    assert (done.exit_code, done.stdout) == (status, "")
    assert done.stderr.splitlines()[-1].startswith(said)
    assert "Error:" not in done.stderr


def test_a_broken_off_question_ends_with_status_1():
    done = CliRunner().invoke(cli.main, ["user", "create", "ada@harbour.example"], input="")
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, "error: aborted")


def test_help_ends_with_status_0():
    done = CliRunner().invoke(cli.main, ["doctor", "--help"])
    assert (done.exit_code, "Check the instance." in done.stdout) == (0, True)
