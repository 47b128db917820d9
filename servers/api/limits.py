"""What this process takes at a time: uploads a second, and bytes of bodies at once. Other processes have their own."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from campaign.errors import TooManyRequests
from servers import settings


class Rate:
    """So many uploads a second, with bursts of one second's worth."""

    def __init__(self, per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._clock = per_second, clock
        self._left, self._at = float(per_second), clock()

    def take(self, count: int) -> None:
        now = self._clock()
        self._left = min(self._per_second, self._left + (now - self._at) * self._per_second)
        self._at = now
        # A request larger than a whole second's worth is let through when the bucket is full.
        if self._left < min(count, self._per_second):
            wait = math.ceil((min(count, self._per_second) - self._left) / self._per_second)
            raise TooManyRequests("more uploads than this server takes", retry_after=max(1, wait))
        self._left -= count


class Limits:
    def __init__(self, of: settings.Limits) -> None:
        self.of, self.uploads = of, Rate(of.uploads_per_s)
        self._in_flight = 0

    @contextmanager
    def reading(self, size: int) -> Iterator[None]:
        """Room for a body; refused while others fill it."""
        if self._in_flight and self._in_flight + size > self.of.bytes_in_flight:
            raise TooManyRequests("the server is reading as much as it can hold", retry_after=1)
        self._in_flight += size
        try:
            yield
        finally:
            self._in_flight -= size
