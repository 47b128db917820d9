"""Campaigns and parties against a pair of live servers."""

from pathlib import Path
from typing import Any

import dealer
from campaign.spec import Campaign, to_base64url
from dealer.cli import main
from harness.live import ROOT, Pair, name
from tests.chaos.liar import Liar
from tests.commands import Done, call
from tests.servers.conftest import new_campaign

DAYS = {"kind": "linear", "values": "integer", "from": 0, "to": 200, "step": 1}


def make(pair: Pair, **changes: Any) -> Campaign:
    campaign = new_campaign(grid=DAYS, **changes)
    pair.create(campaign)
    return campaign


def urls(pair: Pair, campaign: Campaign, liar: Liar | None = None) -> list[str]:
    """Server 1 is the one that may lie."""
    bases = [pair.url(0), pair.url(1) if liar is None else liar.url]
    return [f"{base}/v1/campaigns/{name(campaign)}" for base in bases]


def sites(pair: Pair, campaign: Campaign, token: str | None = None, liar: Liar | None = None) -> dealer.Sites:
    """Patient with an honest server; a liar is asked once."""
    attempts = 6 if liar is None else 1
    token = token or pair.upload_tokens[campaign.id]
    return dealer.Sites(
        urls(pair, campaign, liar), token, pair.folder / "ca.pem", digest=campaign.digest, attempts=attempts
    )


def run(
    pair: Pair, campaign: Campaign, *args: str, stdin: str = "", cwd: Path = ROOT, command: str = "upload", **env: str
) -> Done:
    """fss-dealer."""
    line = [command, "--campaign", *urls(pair, campaign), "--ca", str(pair.folder / "ca.pem"), *args]
    return call(
        main,
        *line,
        stdin=stdin,
        cwd=cwd,
        env={"FSS_UPLOAD_TOKEN": pair.upload_tokens[campaign.id], "FSS_DIGEST": to_base64url(campaign.digest), **env},
    )


def stored(pair: Pair, campaign: Campaign) -> list[int]:
    return [pair.status(campaign, role)["uploads"] for role in (0, 1)]
