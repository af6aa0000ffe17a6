"""Merge another registry into this one, for the command import --follow."""

from collections.abc import Collection
from typing import Any

import click

from muniment import config
from muniment.cli.command import refusals, use_django
from muniment.cli.ending import Ending
from muniment.cli.progress import CONTROLS
from muniment.mirror.copying import BehindTooFar, alone
from muniment.mirror.origin import Origin, Stopped, origin_address


def follow(url: str, *, kinds: Collection[Any], once: bool, restart: bool, limit: int | None) -> None:
    """Merge the registry at *url* until now, or until the command is ended."""
    address = origin_address(url)
    use_django(may_lack_instance=True)
    from muniment.mirror.merging import Merge
    from muniment.registry.publishing.upgrade import bring_up_to_date
    from muniment.store.published_document import KINDS

    with refusals():
        bring_up_to_date()
    with Ending() as ending:
        origin = Origin(address, keeps_trying=not once, wait=ending.wait, tells=tell)
        ending.interrupts(origin.interrupt)
        merge = Merge(origin, config.current().data, kinds or KINDS, limit=limit, restarts=restart, tells=tell)
        with alone(merge.folder):
            try:
                _run(merge, address, ending, waits=not once)
            except Stopped:
                tell("ended; the next run continues here")
            finally:
                origin.close()


def _run(merge: Any, address: str, ending: Ending, *, waits: bool) -> None:
    from django.conf import settings

    schema = settings.SCHEMA
    place = merge.place()
    is_level = False
    while not (ending.wait(0) or (is_level and not waits)):
        try:
            if place is None:
                tell(f"reading the exports of {address}")
                snapshot = merge.fetch()
                merge.build(snapshot, schema)
                place = snapshot.place
            next_place = merge.follow(place, schema, waits=waits)
        except BehindTooFar as reason:
            tell(f"{reason}; reading the exports again")
            place = None
            continue
        is_level, place = next_place == place, next_place
    if place:
        tell(f"at edition {place.after} of {address}")
    else:
        tell("ended before anything was read")


def tell(sentence: str) -> None:
    """Print a sentence, which may have words of another registry, to the error stream."""
    click.echo((sentence[:1].upper() + sentence[1:] + ".").translate(CONTROLS), err=True)
