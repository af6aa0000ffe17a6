"""The command that copies another registry."""

import time
from pathlib import Path

import click

from muniment import config, setting_sources
from muniment.cli.command import main, use_django
from muniment.cli.ending import Ending
from muniment.cli.following import tell
from muniment.kernel.problems import BadRequest
from muniment.mirror.copying import BehindTooFar, Mirror, Place, Snapshot, alone, currency_of, note_mirrored
from muniment.mirror.origin import Origin, Stopped, origin_address
from muniment.schema.objects import Schema


@main.command()
@click.argument("url")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--follow", is_flag=True, help="Stay, and copy each change as it is published.")
@click.option("--restart", is_flag=True, help="Begin again with the exports; the present copy is kept beside it.")
def mirror(url: str, folder: Path, *, follow: bool, restart: bool) -> None:
    """
    Copy the public registry at URL into FOLDER, complete and verified, and serve it with muniment serve --mirror.

    The first run copies the exports, compared with the digests of their list, and then the changes since. Each further
    run, or --follow, continues with the changes; a run that was ended at any moment loses nothing and continues where
    it was. Documents are copied byte by byte, with the numbers and the chain of the change feed, so that a mirror can
    be mirrored, and clients of the feed can change between the two.

    A registry that does not answer, or asks to wait, is asked again: for two minutes, with --follow until it answers.
    If it has another history than the one that was copied, for example after a restore, the command ends and says so,
    and the mirror keeps what it has.
    """
    address = origin_address(url)
    _require_own(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with alone(folder), Ending() as ending:
        origin = Origin(address, keeps_trying=follow, wait=ending.wait, tells=tell)
        ending.interrupts(origin.interrupt)
        try:
            _Copying(Mirror(origin, folder, tells=tell), address, folder, ending).run(follows=follow, restarts=restart)
        except Stopped:
            tell("ended; the next run continues here")
        finally:
            origin.close()


class _Copying:
    """One run of the command."""

    def __init__(self, copy: Mirror, address: str, folder: Path, ending: Ending) -> None:
        self._copy, self._address, self._folder, self._ending = copy, address, folder, ending

    def run(self, *, follows: bool, restarts: bool) -> None:
        began = time.monotonic()
        place = None
        if not restarts and (self._folder / setting_sources.MIRROR).exists():
            self._use_folder()
            place = self._copy.place()
        if place is None:
            place = self._make(keeps_former=restarts)
        changed = place.after
        while not self._ending.wait(0):
            try:
                next_place = self._copy.follow(place, _schema(), waits=follows)
            except BehindTooFar as reason:
                tell(f"{reason}; copying the exports again")
                next_place = self._make(keeps_former=False)
            is_level = next_place == place
            if is_level and not follows:
                break
            if is_level and next_place.after != changed:
                changed = next_place.after
                tell(f"at edition {changed}")
            place = next_place
        self._settle_address()
        done = self._copy.progress()
        seconds = time.monotonic() - began
        tell(f"{done.documents:,} documents at edition {done.edition} of {self._address}, in {seconds:.1f} s")
        if not follows:
            click.echo(f"Serve them with: muniment serve --mirror {self._folder}", err=True)

    def _make(self, *, keeps_former: bool) -> Place:
        """Copy the exports."""
        tell(f"copying the exports of {self._address}")
        snapshot = self._copy.fetch()
        note_mirrored(self._folder, self._address, _currency(snapshot))
        self._use_folder()
        former = None
        if keeps_former:
            former = self._copy.keep_former()
        if former is not None:
            tell(f"the former copy is kept as {former}")
        self._copy.build(snapshot, _schema())
        return snapshot.place

    def _use_folder(self) -> None:
        config.use_data(self._folder)
        use_django(may_be_mirror=True)

    def _settle_address(self) -> None:
        """Note a new address of the origin, which has shown by the chain that it has the same history."""
        if config.current().mirrored != self._address:
            note_mirrored(self._folder, self._address, config.current().currency)


def _schema() -> Schema:
    """Return the schema by which documents are read."""
    from django.conf import settings

    schema: Schema = settings.SCHEMA
    return schema


def _currency(snapshot: Snapshot) -> str:
    return currency_of(snapshot) or config.current().currency


def _require_own(folder: Path) -> None:
    """Refuse a folder that is the data folder of an instance: its documents must not be replaced by another's."""
    is_instance = (folder / "muniment.sqlite3").exists() and not (folder / setting_sources.MIRROR).exists()
    if is_instance:
        message = f"{folder} is the data folder of a registry, not a mirror."
        raise BadRequest(message, "Name another folder; muniment import --follow merges a registry into one's own.")
