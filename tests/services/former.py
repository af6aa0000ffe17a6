"""Later versions of the product: copies of this one with one more migration."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
Version = tuple[Path, ...]
"""The folders that a version is imported from."""


def expanded(folder: Path) -> Version:
    """Copy this version into *folder*, with a migration that adds a column; return the folders to import it from."""
    return _copied(
        folder,
        "from django.db import migrations, models\n"
        "class Migration(migrations.Migration):\n"
        "    dependencies = [('accounts', '{last}')]\n"
        "    operations = [\n"
        "        migrations.AddField('account', 'pronoun', models.CharField(max_length=9, default='', db_default=''))\n"
        "    ]\n",
    )


def contracted(folder: Path) -> Version:
    """Copy this version, with a migration that requires the next form of the database; return it like `expanded`."""
    version = _copied(
        folder,
        "from django.db import migrations\n"
        "from muniment.store.database.form import RequireForm\n"
        "class Migration(migrations.Migration):\n"
        "    dependencies = [('accounts', '{last}')]\n"
        "    operations = [RequireForm(2, '9.1.0')]\n",
    )
    form = version[0] / "muniment" / "store" / "database" / "form.py"
    form.write_text(form.read_text().replace("FORM: Final = 1\n", "FORM: Final = 2\n"))
    return version


def copied(folder: Path) -> Version:
    """Copy this version into *folder*; return the folders to import it from."""
    found = folder / "src"
    shutil.copytree(ROOT / "src", found, ignore=shutil.ignore_patterns("__pycache__"))
    return (found,)


def rename_holders(version: Version) -> None:
    """Change the form of the tables of a copied version: its holders are named shares."""
    form = version[0] / "muniment" / "store" / "tables" / "form.py"
    text = form.read_text()
    assert text.count('"capTable": "holders"') == 1
    form.write_text(text.replace('"capTable": "holders"', '"capTable": "shares"'))


def _copied(folder: Path, migration: str) -> Version:
    """Copy this version, and add *migration* to those of accounts."""
    (found,) = copied(folder)
    migrations = found / "muniment" / "accounts" / "migrations"
    last = max(file.stem for file in migrations.glob("0*.py"))
    (migrations / "0999_later.py").write_text(migration.replace("{last}", last))
    return (found,)


@contextmanager
def running(*version: Path) -> Iterator[None]:
    """Let commands and servers that are started in this context be of the version in these folders, if any."""
    if not version:
        yield
        return
    former = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, version))
    try:
        yield
    finally:
        del os.environ["PYTHONPATH"]
        if former is not None:
            os.environ["PYTHONPATH"] = former
