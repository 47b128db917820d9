"""How long an upload waits, at most, while the keys of a large wave are erased."""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.output import Result
from bench.system.connection import Connection
from bench.system.uploading import fill, new_campaign
from fss_ecdf.campaign.sealed_uploads import seal_upload
from tests.harness.server_pair import LivePair, envelopes, name

BITS = 8


def results(args: argparse.Namespace) -> list[Result]:
    what = f"the longest that an upload of one key waited while the keys of a wave of {args.erased} were erased, SQLite"
    with tempfile.TemporaryDirectory() as folder, LivePair(Path(folder)) as pair:
        waves = {"every": "manual", "count": 2, "pooled": []}
        campaign = new_campaign(BITS, waves=waves, check_keys=True)
        fill(pair, campaign, args.erased, args.seed)
        path = f"/v1/campaigns/{name(campaign)}"
        for role in (1, 0):
            with pair.operator(role) as client:
                client.post(f"{path}/seal", params={"wave": 1}, timeout=600)
        token = pair.upload_tokens[campaign.id]
        connection = Connection(pair, 0, token)
        longest, began = 0.0, time.monotonic()
        while "keys-erased" not in (said := {event["event"] for event in pair.events(0)}):
            longest *= "curve-ready" in said  # what came before is no erasing
            if time.monotonic() - began > 3600:
                raise RuntimeError("the keys were not erased within an hour")
            for _ in range(20):
                body = seal_upload(campaign, 0, envelopes(campaign, np.array([1]), 2)[0], token)
                started = time.perf_counter()
                connection.post(f"{path}/uploads", body)
                longest = max(longest, time.perf_counter() - started)
                time.sleep(0.005)
    return [Result.at_most("erase_stall_s", longest, 1, what)]
