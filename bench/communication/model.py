"""From measured runs to other sizes: costs per party, connection and message, fitted to what was measured.

Every cost is a straight line in one size: a party's bytes in |B| (pointwise), in the bits of the grid (ours) or in its
positions (one-hot); the servers' bytes between them in n (ours) or |B|. `worst` says how far the lines are from the
measured points.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.communication import formulas, onehot, pointwise
from bench.communication.traffic import OURS, Run
from fss_ecdf.campaign.campaign import Campaign
from tests.harness.proxy import RECORD_OVERHEAD, Count


@dataclass(frozen=True)
class Row:
    """Bytes of one protocol at one size, measured or extrapolated."""

    protocol: str
    keep_alive: bool
    n: int
    bits: int
    queries: int
    measured: bool
    party: float  # one party, both servers
    party_body: float  # of it, HTTP bodies
    servers: tuple[float, float]  # everything that one server sends and receives
    peer: float
    analyst: float
    total: float
    round_trips: float  # of one party


def as_row(run: Run) -> Row:
    first, second = (count.bytes for count in run.party)
    peer, analyst = run.peer.bytes, run.analyst.bytes
    return Row(
        run.protocol,
        run.keep_alive,
        run.n,
        run.bits,
        run.queries,
        True,
        run.per_party,
        run.body_per_party,
        (first + peer + analyst, second + peer),
        peer,
        analyst,
        run.total,
        run.round_trips,
    )


Line = Callable[[float], float]


def fit(sizes: Sequence[float], values: Sequence[float]) -> Line:
    """The least-squares line; where all sizes are the same, a constant."""
    if len(set(sizes)) < 2:
        return lambda _: float(np.mean(values))
    slope, start = np.polyfit(sizes, values, 1)
    return lambda size: float(start + slope * size)


class Model:
    """One protocol with connections kept alive or not, from all its measured runs."""

    def __init__(self, runs: Sequence[Run], bits: int, handshake: float) -> None:
        self._bits, self._runs, self._handshake = bits, runs, handshake
        self._protocol, self._keep_alive = runs[0].protocol, runs[0].keep_alive
        at = [self._size(r.queries, r.bits) for r in runs]
        self._party = [fit(at, [r.party[server].bytes / r.n for r in runs]) for server in (0, 1)]
        self._body = fit(at, [r.body_per_party for r in runs])
        asked = [r.queries for r in runs]
        self._trips = fit(asked, [r.round_trips for r in runs])
        self._analyst = fit(asked, [r.analyst.bytes for r in runs])
        self._peer_asked = fit(asked, [self._peer_bytes(r) for r in runs])
        usual = [r for r in runs if r.bits == bits]
        self._peer_n = fit([r.n for r in usual], [self._peer_bytes(r) for r in usual])
        self._peer_grid = fit([1 << r.bits for r in runs], [self._peer_bytes(r) - self._peer_n(r.n) for r in runs])

    def _peer_bytes(self, run: Run) -> float:
        """With one connection, whether this run opened it, found it open or had to open it again; and with nothing
        asked too early, which has heads like everything else that the servers ask each other."""
        wire = run.peer.bytes - run.peer.connections * self._handshake
        bodies, requests = run.bodies, run.requests
        head = (wire - bodies["peer"] - bodies["early"]) / (requests["peer"] + requests["early"])
        return self._handshake + wire - bodies["early"] - requests["early"] * head

    def _size(self, queries: int, bits: int) -> int:
        """What a party's bytes grow with."""
        return {pointwise.NAME: queries, onehot.NAME: 1 << bits, OURS: bits}[self._protocol]

    def party(self, queries: int, bits: int | None = None) -> float:
        """Bytes of one party with both servers."""
        return sum(line(self._size(queries, bits or self._bits)) for line in self._party)

    def body(self, queries: int) -> float:
        """Of them, HTTP bodies."""
        return self._body(self._size(queries, self._bits))

    def _peer(self, n: int, queries: int, bits: int) -> float:
        if self._protocol == OURS:
            return self._peer_n(n) + self._peer_grid(1 << bits)
        return self._peer_asked(queries)

    def row(self, n: int, queries: int, bits: int | None = None) -> Row:
        bits = bits or self._bits
        size = self._size(queries, bits)
        first, second = (n * line(size) for line in self._party)
        peer, analyst = self._peer(n, queries, bits), self._analyst(queries)
        return Row(
            self._protocol,
            self._keep_alive,
            n,
            bits,
            queries,
            False,
            (first + second) / n,
            self._body(size),
            (first + peer + analyst, second + peer),
            peer,
            analyst,
            first + second + peer + analyst,
            self._trips(queries),
        )

    def worst(self) -> float:
        """The largest relative distance of the model from a measured total."""

        def off(run: Run) -> float:
            total = run.total - run.peer.bytes + self._peer_bytes(run)
            return abs(self.row(run.n, run.queries, run.bits).total / total - 1)

        return max(off(run) for run in self._runs)


def crossover(cheap: Callable[[int], float], dear: Callable[[int], float], most: int = 10**7) -> int | None:
    """The smallest number of questions at which `cheap`, which grows, exceeds `dear`."""
    low, high = 0, most
    if cheap(high) <= dear(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if cheap(middle) > dear(middle) else (middle, high)
    return high


def parts(run: Run, bare: Count, campaign: Campaign) -> dict[str, float]:
    """Where our bytes go: one party with both servers, by what they are. The parts add up to the wire bytes."""
    assert run.protocol == OURS
    count = run.party[0] + run.party[1]
    handshake, records = bare.bytes / bare.connections, bare.records / bare.connections
    bodies = {
        "campaign description": 1.0 * formulas.descriptions(campaign),
        "envelope and answer": 2.0 * (formulas.envelope() + formulas.DONE),
        "key": 2.0 * formulas.key(campaign),
        "proof": 2.0 * formulas.proof(campaign),
    }
    framing = {
        "TLS handshakes": count.connections * handshake / run.n,
        "TLS records": RECORD_OVERHEAD * (count.records - count.connections * records) / run.n,
    }
    heads = run.per_party - sum(framing.values()) - sum(bodies.values())
    return {**framing, "HTTP headers": heads, **bodies}
