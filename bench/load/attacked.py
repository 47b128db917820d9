"""How long honest requests wait while a server is attacked: uploads that stall, and long ones of rejected rows."""

import random
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.load.campaigns import new_campaign
from bench.output import Result
from fss_ecdf.campaign.binary_messages import row_bytes
from fss_ecdf.campaign.campaign import Campaign
from tests.harness import attacks
from tests.harness.server_pair import LivePair

COUNT = 100  # honest requests of each kind
SIXTY_MIB = 60 << 20
LONG = 10_000  # uploads of a request that is as long as it may be


def attacked(seed: int) -> list[Result]:
    """The slowest /healthz and the slowest upload of one value in each attack, and what the server had in memory."""
    with tempfile.TemporaryDirectory() as folder, LivePair(Path(folder)) as pair:
        campaign = new_campaign(random.Random(seed))  # noqa: S311 - a benchmark's choices
        pair.create(campaign)
        assert pair.upload(0, campaign, attacks.numbered(campaign, LONG)).status_code == 200
        sizes = SIXTY_MIB // row_bytes(campaign), LONG
        seen = [_stalled(pair, campaign), *(_rejected(pair, campaign, rows) for rows in sizes)]
    refused = sum(status == 429 for one in seen for status in one.statuses)
    what = f"of {COUNT}, in each attack: four uploads that stall, ten of 60 MiB, ten of {LONG} rejected rows"
    return [
        Result.at_most("attacked_healthz_max_s", max(one.healthz_max_s for one in seen), 1, f"slowest /healthz {what}"),
        Result.at_most("attacked_upload_max_s", max(one.upload_max_s for one in seen), 1, f"slowest upload {what}"),
        Result.at_most("attacked_refused", refused, 0, "attacks in which an honest request was answered with 429"),
        Result.at_most("attacked_memory_mb", max(one.memory_mb for one in seen), 400, "MB of the attacked server"),
    ]


def _stalled(pair: LivePair, campaign: Campaign) -> attacks.Honest:
    with ExitStack() as stack:
        for length in (f"Content-Length: {SIXTY_MIB}", attacks.announced(campaign, LONG), attacks.CHUNKED):
            stack.enter_context(attacks.stalled(pair, campaign, length))
        return attacks.watch(pair, campaign, COUNT)


def _rejected(pair: LivePair, campaign: Campaign, rows: int) -> attacks.Honest:
    with attacks.flood(pair, campaign, [attacks.numbered(campaign, rows)] * 10):
        return attacks.watch(pair, campaign, COUNT)
