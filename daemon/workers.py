"""The processes of `run --workers`: the daemon does not outlive one of them.

A worker that ends takes part of the state with it. The daemon then ends with exit code 1 at once, and its supervisor
starts it again: the last snapshot and the input log bring back everything that was acknowledged.
"""

from __future__ import annotations

import asyncio

from watchkeeper.engines.workers.pipeline import SpreadPipeline

LOOK_S = 0.25


async def watch_over(pipeline: SpreadPipeline) -> None:
    """Task: raises WorkerError when a worker has ended or failed, with input or without."""
    while True:
        await asyncio.sleep(LOOK_S)
        pipeline.check()
