"""Campaigns and parties against a pair of live servers."""

from pathlib import Path
from typing import Any

import dealer
from dealer.cli import main
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from tests.chaos.liar import Liar
from tests.commands import Done, call
from tests.harness.server_pair import ROOT, LivePair, name
from tests.servers.conftest import new_campaign

DAYS = {"kind": "linear", "values": "integer", "from": 0, "to": 200, "step": 1}


def make(pair: LivePair, **changes: Any) -> Campaign:
    campaign = new_campaign(grid=DAYS, **changes)
    pair.create(campaign)
    return campaign


def urls(pair: LivePair, campaign: Campaign, liar: Liar | None = None) -> list[str]:
    """Server 1 is the one that may lie."""
    bases = [pair.url(0), pair.url(1) if liar is None else liar.url]
    return [f"{base}/v1/campaigns/{name(campaign)}" for base in bases]


def sites(pair: LivePair, campaign: Campaign, token: str | None = None, liar: Liar | None = None) -> dealer.ServerPair:
    """Patient with an honest server; a liar is asked once."""
    attempts = 6 if liar is None else 1
    token = token or pair.upload_tokens[campaign.id]
    return dealer.ServerPair(
        urls(pair, campaign, liar), token, pair.folder / "ca.pem", digest=campaign.digest, attempts=attempts
    )


def run(
    pair: LivePair,
    campaign: Campaign,
    *args: str,
    stdin: str = "",
    cwd: Path = ROOT,
    command: str = "upload",
    **env: str,
) -> Done:
    """fss-dealer."""
    line = [command, "--campaign", *urls(pair, campaign), "--ca", str(pair.folder / "ca.pem"), *args]
    return call(
        main,
        *line,
        stdin=stdin,
        cwd=cwd,
        env={
            "FSS_UPLOAD_TOKEN": pair.upload_tokens[campaign.id],
            "FSS_CAMPAIGN_DIGEST": to_base64url(campaign.digest),
            **env,
        },
    )


def stored(pair: LivePair, campaign: Campaign) -> list[int]:
    return [pair.status(campaign, role)["uploads"] for role in (0, 1)]
