"""The campaigns of a load test."""

import random
from typing import Any

from fss_ecdf.campaign.campaign import Campaign
from tests.harness.server_pair import commitments


def new_campaign(rng: random.Random) -> Campaign:
    grid = {"kind": "linear", "values": "integer", "from": 0, "to": 1023, "step": 1}
    about: dict[str, Any] = {"id": rng.randbytes(32), "title": "load", "question": "load", "epsilon": 1.0}
    about["variables"] = [{"name": "value", "grid": grid}]
    about |= {"server_commitments": commitments(about["id"]), "min_uploads": 1, "max_uploads": 10_000_000}
    return Campaign.from_dict(about)
