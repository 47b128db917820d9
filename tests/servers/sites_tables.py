"""What several tests of tables do: campaigns that take them, sites, and tables that are honest or not."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

from dealer.table_shares import TableShares, make_table
from fss import field, table
from fss.field import P
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.tables import table_binder, table_shape
from fss_ecdf.net.tokens import hash_token
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import new_campaign

Counts = np.ndarray[Any, np.dtype[np.int64]]

GRID = {"kind": "linear", "values": "integer", "from": 0, "to": 40, "step": 1}
STRATA = ["no", "yes", "unknown"]


@dataclass(frozen=True)
class SiteToken:
    id: str
    token: str


def table_campaign(**changes: Any) -> Campaign:
    """Strata and thresholds that do not fill their domain."""
    about = {"admission": "sites", "check_keys": True, "tables": True, "grid": GRID, "strata": STRATA}
    return new_campaign(**{**about, **changes})


def add_sites(pair: LivePair, campaign: Campaign, quotas: Sequence[int]) -> list[SiteToken]:
    sites = [SiteToken(secrets.token_hex(16), secrets.token_hex(16)) for _ in quotas]
    about = [
        {"id": site.id, "label": f"Hospital {k}", "token": hash_token(site.token), "quota": quota}
        for k, (site, quota) in enumerate(zip(sites, quotas, strict=True))
    ]
    for role in (0, 1):
        with pair.operator(role) as client:
            answer = client.post(f"/v1/campaigns/{name(campaign)}/sites", json={"sites": about})
            assert answer.json() == {"added": len(sites)}, answer.text
    return sites


def some_positions(campaign: Campaign, count: int, seed: int = 0) -> Counts:
    random = np.random.default_rng(seed)
    strata, index = random.integers(0, len(campaign.strata), count), random.integers(0, campaign.variable.size, count)
    return np.asarray(campaign.position(strata, index))


def honest(
    campaign: Campaign, positions: Counts, wave: int | None = None, upload_id: bytes | None = None
) -> TableShares:
    of, named = campaign.first_wave if wave is None else wave, upload_id or secrets.token_bytes(16)
    return make_table(positions, campaign, secret=secrets.token_bytes(32), upload_id=named, wave=of)


def shared(campaign: Campaign, words: Sequence[int], people: int, wave: int = 0) -> TableShares:
    """Any words as the shares of a table of so many people."""
    upload_id, shape = secrets.token_bytes(16), table_shape(campaign, people)
    assert len(words) == shape.words
    seed = secrets.token_bytes(table.SEED_BYTES)
    given = np.array([word % P for word in words], np.uint64)
    rest = field.sub(given, table.expand(seed, table_binder(campaign, upload_id, wave, people), shape))
    both = seed, table.encode_words(rest, shape)
    shares = both if table.seed_server(upload_id) == 0 else both[::-1]
    return TableShares(campaign, upload_id, people, shares, wave)


def send_table(pair: LivePair, made: TableShares, token: str, roles: Sequence[int] = (0, 1)) -> list[httpx.Response]:
    return [pair.upload(role, made.campaign, made.envelope(role), token) for role in roles]


def stored(pair: LivePair, made: TableShares, token: str) -> None:
    for answer in send_table(pair, made, token):
        assert answer.json()["failures"] == [], answer.text
