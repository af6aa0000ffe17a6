"""A worker process follows its supervisor."""

import asyncio
import os
import socket

import pytest
import uvloop

from muniment.server.process.shared_metrics import SharedMetrics
from muniment.server.process.worker_process import READY, WorkerProcess


@pytest.mark.parametrize("has_unread_report", [False, True])
def test_it_ends_when_its_supervisor_is_gone(tmp_path, has_unread_report):
    metrics = os.open(tmp_path / "metrics", os.O_RDWR | os.O_CREAT)
    ours, theirs = socket.socketpair()
    worker = WorkerProcess(1, ours, ours, SharedMetrics(metrics, 1))

    async def run():
        ended = asyncio.Event()
        worker.watch(asyncio.get_running_loop(), ended.set)
        if has_unread_report:
            worker.tell(READY)
        theirs.close()
        await asyncio.wait_for(ended.wait(), 60)

    uvloop.run(run())  # which drops a reader whose callback fails, as asyncio does not
    ours.close()
    os.close(metrics)
