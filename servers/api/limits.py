"""What this process takes at a time: uploads a second, and bytes of bodies at once. Other processes have their own.

Beside the total, every token and every address has a share, so that nobody takes the room of all others.
"""

import asyncio
import ipaddress
import math
import time
from collections import Counter
from collections.abc import Callable

from fss_ecdf.campaign.errors import TooManyRequests
from servers import settings

# Of each body so many bytes are not counted: the HTTP parser holds as many of any connection before anybody reads
# them. So a request with a few values never waits for the bytes of others.
UNCOUNTED = 1 << 16
# Of the uploads a second, what one token or one address may take.
RATE_SHARE = 0.5
# A body must have come at the least rate from here on.
GRACE_S = 10.0
_MANY = 10_000  # token buckets, before those that are full again are dropped
HELD = "fss.held"  # where a request's scope has them
_ALL = ""  # the key of what everybody takes together


def address_key(host: str) -> str:
    """Who an address belongs to: of IPv6 the first 64 bits, since one customer has all that follow."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    return str(address.ipv4_mapped or ipaddress.IPv6Network((address, 64), strict=False))


class Rate:
    """So many uploads a second, with bursts of one second's worth, in all and for each key."""

    def __init__(self, per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._clock = per_second, clock
        self._buckets: dict[str, tuple[float, float]] = {}  # key -> what was left, and when

    def require(self, count: int, *keys: str) -> None:
        """Raise if whoever has these keys may not send so many uploads now. Nothing is counted: they may never come."""
        now = self._clock()
        for left, size in (self._left(key, now) for key in (_ALL, *keys)):
            # A request larger than a whole second's worth is let through when the bucket is full.
            if left < min(count, size):
                wait = math.ceil((min(count, size) - left) / size)
                raise TooManyRequests("more uploads than this server takes", retry_after=max(1, wait))

    def take(self, count: int, *keys: str) -> None:
        """Count uploads of whoever has these keys, or raise and count nothing.

        One request takes at most one sender's share from everybody, however long it is: who sent it waits for the rest.
        """
        self.require(count, *keys)
        now, most = self._clock(), self._per_second * RATE_SHARE
        for key in (_ALL, *keys):
            self._buckets[key] = (self._left(key, now)[0] - (min(count, most) if key == _ALL else count), now)
        if len(self._buckets) > _MANY:
            self._buckets = {key: kept for key, kept in self._buckets.items() if not self._is_full(key, now)}

    def _left(self, key: str, now: float) -> tuple[float, float]:
        """What a key may take now, and a second."""
        size = self._per_second * (1.0 if key == _ALL else RATE_SHARE)
        left, at = self._buckets.get(key, (size, now))
        return min(size, left + (now - at) * size), size

    def _is_full(self, key: str, now: float) -> bool:
        left, size = self._left(key, now)
        return left >= size


class Held:
    """The bytes of one request's body, from their arrival until the request is answered."""

    def __init__(self, limits: "Limits", token: str, address: str) -> None:
        self._limits, self._counted = limits, 0
        whose = (_ALL, "the server"), (f"token {token}", "this token"), (f"address {address}", "this address")
        self._shares = [(key, name, most) for (key, name), most in zip(whose, limits.shares, strict=True)]

    def count(self, arrived: int) -> None:
        """So many bytes have arrived by now, or raise; alone, a request may have more than a share."""
        more = max(0, arrived - UNCOUNTED) - self._counted
        for key, name, most in self._shares:
            held = self._limits.held[key]
            if held > self._counted and held + more > most:
                raise TooManyRequests(f"{name} has as many bytes of requests under way as it may", retry_after=1)
        self._add(more)

    def release(self) -> None:
        self._add(-self._counted)

    def _add(self, more: int) -> None:
        self._counted += more
        for key, _, _ in self._shares:
            self._limits.held[key] += more
            if not self._limits.held[key]:
                del self._limits.held[key]


class Limits:
    def __init__(self, of: settings.Limits) -> None:
        self.of, self.uploads = of, Rate(of.uploads_per_s)
        self.shares = of.bytes_in_flight, of.bytes_per_token, of.bytes_per_address
        self.held: Counter[str] = Counter()  # bytes by key
        # Each ends with emptying the database's log, and whoever writes waits for it: so one at a time.
        self.withdrawing = asyncio.Semaphore(1)
        self.writing = asyncio.Semaphore(1)  # whole curves into text: seconds of a core, and much memory

    def body_until(self, arrived: int) -> float:
        """How many seconds after its beginning a body must be complete, or more of it must have come."""
        return min(self.of.receive_timeout_s, GRACE_S + arrived / self.of.body_bytes_per_s)
