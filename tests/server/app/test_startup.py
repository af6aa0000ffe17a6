"""What start-up and the metrics say of the disk of the data folder."""

import asyncio
import gc
import os
import sys
from types import SimpleNamespace

import pytest

from muniment import config
from muniment.server.app.startup import Startup, free_ratio


@pytest.mark.parametrize(("free", "share"), [(0, 0.0), (5, 0.05), (100, 1.0)])
def test_the_free_part_of_a_disk_is_what_can_be_written(tmp_path, monkeypatch, free, share):
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free, f_blocks=100))
    assert free_ratio(tmp_path) == share


def test_a_folder_that_is_not_there_has_no_room(tmp_path):
    assert free_ratio(tmp_path / "gone") == 0.0


def test_what_is_imported_is_left_out_of_collections(monkeypatch):
    monkeypatch.setattr(Startup, "_persist", lambda _: True)
    every, loop = sys.getswitchinterval(), asyncio.new_event_loop()
    names = ("on_tools", "on_database", "on_pages", "on_published", "on_failure", "has_registry")
    try:
        Startup(config.current(), loop, **dict.fromkeys(names, print))._run()
        assert gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < 10_000
    finally:
        gc.unfreeze()
        sys.setswitchinterval(every)
        loop.close()
