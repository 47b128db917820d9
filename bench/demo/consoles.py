"""What a demo that is kept has for a browser: both consoles, and a party's page of a campaign that is still open."""

import os
import subprocess
import sys
import time
from pathlib import Path

from campaign.spec import ID_BYTES, Campaign, from_base64url, new_id, to_base64url
from harness.live import Pair, pledges
from web.page import party_page

OPEN = """
title = "Waiting time"
question = "How many days did you wait for your operation?"
unit = "days"
epsilon = 1.0
min_uploads = 1
[grid]
kind = "linear"
values = "integer"
from = 0
to = 730
step = 1
"""


def start(pair: Pair, out: Path, env: dict[str, str]) -> tuple[list[int], list[str]]:
    """Processes that go on, and lines that say where to look."""
    asked = {**env, "FSS_ANALYST_TOKEN": pair.servers[0].analyst}
    processes, lines = [], ["In a browser on this machine (each address works once):"]
    for program, what in (("fss-analyst", "analyst"), ("fss-server", "operator")):
        process, link = _console(program, asked, out / f"{what}-console.log")
        processes.append(process)
        lines.append(f"  {what}'s console: {link}")
    page, token = _page(pair, out)
    lines.append(f"  party's page:       {page.as_uri()}#token={token}")
    lines.append(f"  (the page needs a browser that trusts {out / 'pair' / 'ca.pem'}, the demo's authority)")
    return processes, lines


def _console(program: str, env: dict[str, str], log: Path) -> tuple[int, str]:
    """A console that runs on, and the address it printed."""
    command = [str(Path(sys.executable).with_name(program)), "console"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=output, start_new_session=True)
    for _ in range(300):
        found = [line.strip() for line in log.read_text().splitlines() if "/enter?secret=" in line]
        if found:
            return process.pid, found[0]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit(f"{program} console did not start:\n{log.read_text()}")


def _page(pair: Pair, out: Path) -> tuple[Path, str]:
    fields = Campaign.from_toml(OPEN, id=new_id(os.urandom)).model_dump(mode="json", by_alias=True)
    campaign = Campaign.from_dict({**fields, "servers": pledges(from_base64url(fields["id"], ID_BYTES, "an id"))})
    pair.create(campaign)
    page = out / "party.html"
    page.write_text(party_page(campaign, [f"{pair.url(r)}/v1/campaigns/{to_base64url(campaign.id)}" for r in (0, 1)]))
    return page, pair.upload_tokens[campaign.id]
