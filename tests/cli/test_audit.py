"""`muniment audit`: one line for each event."""

from muniment.cli.audit import _line


def test_a_line_names_who_did_what_to_which_account():
    values = {"actor": "ann@harbour.example", "credential": "", "via": "web", "account": "ben@harbour.example"}
    line = _line({**values, "at": "2026-01-01T00:00:00Z"}, "Account locked", [("Reason", "asked")])
    said = "Account: ben@harbour.example; Reason: asked"
    assert line == f"2026-01-01T00:00:00Z\tann@harbour.example\tAccount locked\t{said}"
