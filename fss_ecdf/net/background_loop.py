"""Coroutines from ordinary code, also inside a notebook, whose event loop runs already: a thread with a loop for them.

One loop for all that a program does with its servers, so that connections stay open between one call and the next.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

R = TypeVar("R")


class BackgroundLoop:
    """An event loop in a thread of its own, until it is closed."""

    def __init__(self) -> None:
        self._loop, self._closing = asyncio.new_event_loop(), False
        self._waiting: set[Future[Any]] = set()
        self._thread = threading.Thread(target=self._serve, name="loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Its result; whoever interrupts the wait ends the work."""
        result: Future[R] = Future()
        self._waiting.add(result)
        self._loop.call_soon_threadsafe(self._begin, work, result)
        try:
            return result.result()
        except BaseException:
            self._loop.call_soon_threadsafe(self._end_all)
            raise
        finally:
            self._waiting.discard(result)

    def _begin(self, work: Coroutine[Any, Any, R], result: "Future[R]") -> None:
        def ended(task: asyncio.Task[R]) -> None:
            if result.done():
                return
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if error is not None:
                result.set_exception(error)
            else:
                result.set_result(task.result())

        self._loop.create_task(work).add_done_callback(ended)

    def _serve(self) -> None:
        while not self._closing:
            try:
                self._loop.run_forever()
            except BaseException as error:  # an interrupt inside the work ends the loop's run, not the loop
                for result in list(self._waiting):
                    if not result.done():
                        result.set_exception(error)

    def _end_all(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    def close(self) -> None:
        if not self._loop.is_closed():
            self._closing = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
