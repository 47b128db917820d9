"""Running a coroutine to its end from ordinary code, also inside a notebook, whose event loop runs already."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

R = TypeVar("R")


def run(work: Coroutine[Any, Any, R]) -> R:
    """Its result. Where a loop runs in this thread, a thread with a loop of its own does the work."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as one:
        return one.submit(asyncio.run, work).result()
