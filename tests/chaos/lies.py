"""Honest parties, one honest server and one that lies: whatever it answers, every party counts at most once.

A sequence follows from its seed: which server lies and how, how bad the network to the honest one is, and for each
party a few runs of the real upload program: uploads, some interrupted, of the same or of other values, with or without
`replace`, and withdrawals. Between runs, what was kept for later is done. Then the campaign is sealed, and for every
party must hold:

1. Every value counts at most once, and only values of one and the same upload count.
2. What it was told to be stored is at the honest server; it counts, exactly once, if the liar really has stored it.
3. What it was told to be withdrawn does not count.

That a server which stores nothing and says otherwise keeps a party out, no program of the party can prevent: the sealed
set is what both servers hold. `docs/security.md` says so.
"""

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from dealer.receipt import NEW, BatchState, open_receipt
from dealer.servers import ServerPair
from dealer.upload_client import upload, withdraw
from fss_ecdf.campaign.campaign import Campaign, Positions
from fss_ecdf.campaign.errors import InvalidValue, Problem
from tests.chaos.liar import LIES, NETWORK, Liar
from tests.chaos.model import Broken
from tests.chaos.operations import Interrupted, new_batch
from tests.chaos.world import stored_ids
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import new_campaign

TIMEOUT_S = 0.4
STORED, WITHDRAWN, UNKNOWN = "stored", "withdrawn", "unknown"

Values = tuple[int, ...]


@dataclass
class LiedTo:
    """A party, what it has been told, and which values each generation of its ids stands for."""

    campaign: Campaign
    sites: ServerPair
    receipt: Path
    told: str = UNKNOWN
    values: Values = ()
    sent: dict[int, Values] = field(default_factory=dict)
    runs: int = 0

    def upload(self, values: Values, replace: bool, interrupt: bool) -> None:
        placed = Positions(np.array(values), 0, 0)
        progress = partial(_interrupt, interrupt)
        try:
            upload(placed, self.campaign, self.sites, receipt=self.receipt, replace=replace, progress=progress)
            self.told, self.values = STORED, values
        except InvalidValue as refusal:
            if replace or "fss-dealer upload --replace" not in refusal.detail:
                raise Broken(f"refused for another reason: {refusal.detail}") from None
        except (Problem, Interrupted):
            self.told = UNKNOWN
        self._note(values)

    def withdraw(self) -> None:
        try:
            withdraw(self.sites, receipt=self.receipt)
            self.told = WITHDRAWN
        except Problem:
            if self.receipt.exists():
                self.told = UNKNOWN
        self._note(())

    def _note(self, values: Values) -> None:
        """Whatever generation is new was of these values; one that nothing was sent of may still be of others."""
        self.runs += 1
        part = self._part()
        for generation in range(part.attempt + (part.state != NEW)):
            self.sent.setdefault(generation, values)

    def _part(self) -> BatchState:
        if not self.receipt.exists():
            return BatchState()
        with open_receipt(self.receipt, name(self.campaign), self.sites.token, bytes) as kept:
            return kept.parts.get(0, BatchState())

    def ids(self, generation: int) -> list[bytes]:
        with open_receipt(self.receipt, name(self.campaign), self.sites.token, bytes) as kept:
            rows = kept.source.ids(0, generation, len(self.sent[generation]))
        return [row.tobytes() for row in rows]

    def check(self, sealed: set[bytes], honest: set[bytes], liar: set[bytes]) -> int:
        """How many of its values count; `honest` and `liar` are what both had before the sealing."""
        counted = {g: n for g in self.sent if (n := len(sealed & set(self.ids(g))))}
        if len(counted) > 1:
            raise Broken(f"a party counts {len(counted)} times")
        if self.told == WITHDRAWN and counted:
            raise Broken("a party counts that was told that its values are withdrawn")
        if self.told == STORED:
            self._check_stored(sealed, honest, liar)
        return sum(counted.values())

    def _check_stored(self, sealed: set[bytes], honest: set[bytes], liar: set[bytes]) -> None:
        last = max(self.sent)
        mine = set(self.ids(last))
        if self.sent[last] != self.values:
            raise Broken("a party was told that its values are stored, and others were sent")
        if not mine <= honest:
            raise Broken("a party was told that its values are stored, and the honest server does not have them")
        if mine <= liar and not mine <= sealed:
            raise Broken("both servers had stored a party's values, and they do not count")


def _interrupt(wanted: bool, count: int) -> None:
    if wanted and count:
        raise Interrupted


@dataclass(frozen=True)
class Outcome:
    seconds: float
    runs: int
    lies: int
    values: int
    counted: int


def play(pair: LivePair, folder: Path, seed: str) -> Outcome:
    """One sequence against two servers that run."""
    rng, started = random.Random(seed), time.monotonic()
    campaign = new_campaign(min_uploads=1, id=rng.randbytes(32))
    pair.create(campaign)
    role = rng.randrange(2)
    faults = {role: rng.sample(LIES, rng.randint(2, 6)), 1 - role: rng.sample(NETWORK, rng.randint(1, 3))}
    often = {role: rng.choice([0.3, 0.6, 0.9]), 1 - role: rng.choice([0.0, 0.3, 0.6])}
    with ExitStack() as stack:
        fronts = [stack.enter_context(Liar(pair, r, _chooser(faults[r], often[r], rng.random()))) for r in (0, 1)]
        parties = [_party(pair, campaign, fronts, folder / f"{i}.json", rng) for i in range(rng.randint(1, 2))]
        for _ in range(rng.randint(4, 10)):
            _run(rng.choice(parties), rng)
            for front in fronts:
                if rng.random() < 0.4:
                    front.catch_up(rng)
        if rng.random() < 0.5:
            _speak_the_truth(fronts, parties, rng)
        for front in fronts:
            front.catch_up(rng)
        lies = sum(lie != "honest" for lie in fronts[role].told)
        for party in parties:
            party.sites.close()  # or the servers in between would wait for their connections
    counted = _seal_and_check(pair, campaign, role, parties, rng)
    values = sum(len(party.values) for party in parties)
    return Outcome(time.monotonic() - started, sum(p.runs for p in parties), lies, values, counted)


def _chooser(faults: list[str], often: float, seed: float) -> Callable[[], str]:
    draw = random.Random(seed)
    return lambda: draw.choice(faults) if draw.random() < often else "honest"


def _speak_the_truth(fronts: list[Liar], parties: list[LiedTo], rng: random.Random) -> None:
    """From now on; then every party comes to an end."""
    for front in fronts:
        front.choose = lambda: "honest"
    for party in parties:
        party.upload(party.values or (1, 2), replace=rng.random() < 0.2, interrupt=False)


def _party(pair: LivePair, campaign: Campaign, fronts: list[Liar], receipt: Path, rng: random.Random) -> LiedTo:
    urls = [f"{front.url}/v1/campaigns/{name(campaign)}" for front in fronts]
    attempts = rng.choice([1, 1, 2])
    token = pair.upload_tokens[campaign.id]
    sites = ServerPair(
        urls, token, pair.folder / "ca.pem", digest=campaign.digest, timeout_s=TIMEOUT_S, attempts=attempts
    )
    return LiedTo(campaign, sites, receipt)


def _run(party: LiedTo, rng: random.Random) -> None:
    if rng.random() < 0.15:
        party.withdraw()
        return
    same = party.values and rng.random() < 0.7
    values = party.values if same else tuple(rng.randrange(100) for _ in range(rng.randint(1, 5)))
    if not party.values:
        party.values = values
    party.upload(values, replace=rng.random() < 0.2, interrupt=rng.random() < 0.2)


def _seal_and_check(pair: LivePair, campaign: Campaign, role: int, parties: list[LiedTo], rng: random.Random) -> int:
    extra = new_batch(campaign, 1, rng)  # so that there is something to seal
    for server in (0, 1):
        pair.upload(server, campaign, extra.envelopes[server])
    before = [stored_ids(pair, server, campaign.id) for server in (0, 1)]
    pair.seal(campaign, role=1 - role)
    sealed = [stored_ids(pair, server, campaign.id) for server in (0, 1)]
    if sealed[0] != sealed[1]:
        raise Broken("the servers hold different sets")
    counted = sum(party.check(sealed[0], before[1 - role], before[role]) for party in parties)
    if counted + 1 != len(sealed[0]):
        raise Broken(f"{len(sealed[0])} uploads are sealed, {counted + 1} are known")
    return counted
