"""Campaigns and uploads for the benchmarks of whole servers."""

import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bench.system.connection import Connection
from fss_ecdf.campaign.campaign import Campaign
from tests.harness.server_pair import LivePair, commitments, name, sealed_envelopes

PER_REQUEST = 1000


def new_campaign(bits: int, **changes: object) -> Campaign:
    """Of whole numbers from 0 on, in so many bits."""
    grid = {"kind": "linear", "values": "integer", "from": 0, "to": (1 << bits) - 1, "step": 1}
    fields: dict[str, Any] = {
        "id": secrets.token_bytes(32),
        "title": "bench",
        "question": "bench",
        "variables": [{"name": "value", "grid": grid}],
        "epsilon": 1.0,
    }
    fields |= {"server_commitments": commitments(fields["id"]), "check_keys": False}
    return Campaign.from_dict({**fields, "min_uploads": 1, "max_uploads": 10_000_000, **changes})


def bodies(campaign: Campaign, token: str, count: int, per_request: int, seed: int) -> Iterator[tuple[bytes, bytes]]:
    rng = np.random.default_rng(seed)
    for start in range(0, count, per_request):
        positions = rng.integers(0, 1 << campaign.bits, min(per_request, count - start))
        yield sealed_envelopes(campaign, positions, token)


def send(pair: LivePair, role: int, campaign: Campaign, bodies: Sequence[bytes], connections: int) -> float:
    """Seconds to upload these bodies to one server over some kept-alive connections."""
    path = f"/v1/campaigns/{name(campaign)}/uploads"
    token = pair.upload_tokens[campaign.id]

    def run(mine: Sequence[bytes]) -> None:
        connection = Connection(pair, role, token)
        for body in mine:
            if not connection.post(path, body).startswith(b'{"failures":[],"signature":'):
                raise RuntimeError("an upload failed")

    started = time.perf_counter()
    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(run, [bodies[i::connections] for i in range(connections)]))
    return time.perf_counter() - started


def fill(pair: LivePair, campaign: Campaign, count: int, seed: int) -> list[float]:
    """Upload to both servers, one after the other; the rate of each."""
    pair.create(campaign)
    seconds, step = [0.0, 0.0], 100_000
    for start in range(0, count, step):
        token = pair.upload_tokens[campaign.id]
        parts = list(bodies(campaign, token, min(step, count - start), PER_REQUEST, seed + start))
        for role in (0, 1):
            seconds[role] += send(pair, role, campaign, [p[role] for p in parts], 2)
        if count > step:
            print(f"  {start + len(parts) * PER_REQUEST} of {count} keys uploaded", flush=True)
    return [count / s for s in seconds]
