"""`muniment import` of a table whose columns are guesses: asked in a terminal, refused without one."""

import os
import pty
import subprocess
import sys

from services.prepared import new_instance
from services.product import environment, run

TABLE = "Ettevõte;Kontakt meilile;Liitumine\nKask Selts;info@kask.example;1\nTamm Liit;info@tamm.example;2\n"


def test_guesses_need_a_person_or_a_flag(tmp_path):
    data, file = new_instance(tmp_path / "data"), tmp_path / "seltsid.csv"
    file.write_text(TABLE)
    refused = run("import", str(file), data=data, check=False)
    assert refused.returncode == 1
    assert "Ettevõte may be name" in refused.stderr
    assert "import with --accept-guesses" in refused.stderr
    assert "companies: 2 new" in run("import", str(file), "--accept-guesses", data=data).stdout


def test_a_terminal_asks_for_guesses_and_choices(tmp_path):
    data, file = new_instance(tmp_path / "data"), tmp_path / "list.csv"
    file.write_text(
        "Company;Kontakt meilile;Member since\nKask;info@kask.example;03/04/1998\nTamm;info@tamm.example;05/06/1999\n"
    )
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "muniment", "import", str(file)]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(data)
    )
    os.write(ours, b"y\nDMY\n")
    out, _ = process.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    text = out.decode()
    assert 'does the column "Kontakt meilile" hold socials.email?' in text
    assert "Member since: order" in text
    assert "companies: 2 new" in text


def test_a_mapping_that_needs_a_choice_declares_no_field(tmp_path):
    data, file = new_instance(tmp_path / "data"), tmp_path / "grants.csv"
    rows = [f"Alder House,{year},oak" for year in range(2001, 2006)]
    file.write_text("\n".join(["Company,Budget year,Timber", *rows]) + "\n")
    refused = run("import", str(file), "--accept-guesses", "--keep-all", data=data, check=False)
    assert refused.returncode == 1
    assert "needs 1 choice" in refused.stderr
    assert "Declared fields" not in refused.stdout
    assert "timber" not in run("settings", "show", data=data).stdout
