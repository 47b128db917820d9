"""What `--keep` leaves for a browser: both consoles, and the party page of a campaign that is still open."""

import subprocess
import time
from pathlib import Path

from fss_ecdf.cli.common import UsageError
from fss_ecdf.demo import programs
from fss_ecdf.demo.programs import Servers

OPEN = """
title = "Waiting time"
question = "How many days did you wait for your operation?"
epsilon = 1.0
min_uploads = 1
[[variables]]
name = "waiting time"
unit = "days"
[variables.grid]
kind = "linear"
values = "integer"
from = 0
to = 730
step = 1
"""


def start(servers: Servers, out: Path, env: dict[str, str]) -> tuple[list[int], list[str]]:
    """Start both consoles; returns their process ids, and lines that say what to open."""
    processes, lines = [], ["In a browser on this machine (each address works once):"]
    for program, role in (("fss-analyst", "analyst"), ("fss-server", "operator")):
        process, link = _console(program, env, out / f"{role}-console.log")
        processes.append(process)
        lines.append(f"  {role + ' console:':<18}{link}")
    lines.append(f"  {'party page:':<18}{_party_page(servers, out)}")
    lines.append(f"  (the party page needs a browser that trusts the demo's authority, {servers.folder / 'ca.pem'})")
    return processes, lines


def _console(program: str, env: dict[str, str], log: Path) -> tuple[int, str]:
    """A console that keeps running, and the address that it printed."""
    command = [programs.installed(program), "console"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=output, start_new_session=True)
    for _ in range(300):
        links = [line.strip() for line in log.read_text().splitlines() if "/enter?secret=" in line]
        if links:
            return process.pid, links[0]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise UsageError(f"{program} console did not start; its log is {log}")


def _party_page(servers: Servers, out: Path) -> str:
    """The address of the page, with the token that lets a party upload."""
    toml, page = out / "open.toml", out / "party.html"
    toml.write_text(OPEN)
    env = servers.create(toml)
    programs.run(["fss-server", "campaign", "party-page", env["FSS_CAMPAIGN_ID"], "--out", str(page)], env)
    return f"{page.as_uri()}#token={env['FSS_UPLOAD_TOKEN']}"
