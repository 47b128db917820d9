"""How many uploads a server takes."""

import math
import time
from collections.abc import Callable

from campaign.errors import TooManyRequests


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
