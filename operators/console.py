"""What `fss-server console` answers its page: both servers' campaigns, health and certificates, and sealing.

A server that cannot be reached is unknown: no number stands for it. Tokens stay in this program.
"""

import argparse
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from campaign.errors import InvalidQuery, Problem
from campaign.spec import Campaign, to_base64url
from client.program import OK
from operators import remotes as at_both
from operators.commands import operator_file
from operators.remotes import Remote
from web.console import console_page
from web.local import Answer, Console, Download, Query, Routes
from web.page import party_page

MOST_SEEN = 2000  # points of uploads over time that are kept
CONNECT_S = 5.0


def console(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    with (
        at_both.remotes_of(operator_file(args), timeout_s=CONNECT_S) as quick,
        at_both.remotes_of(operator_file(args)) as patient,
    ):
        served = Console(console_page("operator"), Watch(quick, patient, time.time).routes(), args.port)
        print(f"open once, in a browser on this machine:\n  {served.link}", flush=True)
        print("\nthe tokens stay in this program; end it with Ctrl-C", flush=True)
        try:
            served.serve()
        except KeyboardInterrupt:
            return OK
    return OK


class Watch:
    """Both servers as they are now, and what this console has seen and done since it was started."""

    def __init__(self, quick: list[Remote], patient: list[Remote], clock: Callable[[], float]) -> None:
        self._quick, self._patient, self._clock = quick, patient, clock
        self._seen: dict[str, list[list[float | None]]] = defaultdict(list)
        self._done: list[dict[str, Any]] = []
        self._sealing: set[str] = set()

    def routes(self) -> Routes:
        return Routes(
            get={"/api/overview": self.overview, "/api/campaign": self.campaign, "/api/page": self.page},
            post={"/api/seal": self.seal, "/api/confirm": self.confirm},
        )

    def overview(self, _: Query) -> Answer:
        """Servers, and campaigns with where they stand at each."""
        rows: dict[str, list[dict[str, Any] | None]] = {}
        servers = [self._server(remote, rows) for remote in self._quick]
        now = self._clock()
        campaigns = []
        for name, found in rows.items():
            uploads = [None if row is None else row["uploads"] for row in found]
            self._seen[name] = [*self._seen[name], [now, *uploads]][-MOST_SEEN:]
            title = next((row["title"] for row in found if row), "")
            known = [server["health"] != "unknown" for server in servers]
            campaigns.append(
                {"id": name, "title": title, "servers": found, "next": next_step(found, known, name in self._sealing)}
            )
        return {"servers": servers, "campaigns": campaigns, "done": self._done[::-1]}

    def _server(self, remote: Remote, rows: dict[str, list[dict[str, Any] | None]]) -> dict[str, Any]:
        about: dict[str, Any] = {"number": remote.number, "url": remote.url, "health": "unknown", "detail": ""}
        about["certificate"] = certificate_end(remote.url, remote.ca)
        try:
            about["health"] = remote.call("GET", "/readyz").json()["status"]
            for row in remote.call("GET", "/v1/campaigns").json():
                rows.setdefault(row["id"], [None] * len(self._quick))[remote.number] = row
        except Problem as problem:
            about["detail"] = problem.detail
            if problem.code != "peer-unavailable" and about["health"] == "unknown":
                about["health"] = "not ready"
        return about

    def campaign(self, query: Query) -> Answer:
        """One campaign: what it is, where it stands at each server, uploads over time, and the budget."""
        name, statuses = query.text("id"), at_both.statuses(self._quick, query.text("id"))
        about = self._described(name)
        budgets = [self._budget(remote, name) for remote in self._quick]
        rows = [s if "state" in s else None for s in statuses]
        known = [
            row is not None or s.get("problem") != "peer-unavailable" for row, s in zip(rows, statuses, strict=True)
        ]
        step = next_step(rows, known, name in self._sealing)
        return {"about": about, "statuses": statuses, "seen": self._seen[name], "budgets": budgets, "next": step}

    def _described(self, name: str) -> dict[str, Any] | None:
        for remote in self._quick:
            try:
                made = Campaign.from_dict(remote.call("GET", f"/v1/campaigns/{name}").json()["campaign"])
            except Problem:
                continue
            fields = made.model_dump(mode="json", by_alias=True)
            return {
                **fields,
                "digest": to_base64url(made.digest),
                "bits": made.bits,
                "total_epsilon": made.total_epsilon,
            }
        return None

    @staticmethod
    def _budget(remote: Remote, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = remote.call("GET", f"/v1/campaigns/{name}/budget").json()
        except Problem:
            return None
        return found

    def page(self, query: Query) -> Answer:
        """The party's page, to be saved."""
        name = query.text("id")
        made = at_both.agreed(self._quick, name)
        text = party_page(made, [f"{remote.url}/v1/campaigns/{name}" for remote in self._quick])
        return Download("party.html", "text/html; charset=utf-8", text.encode())

    def seal(self, query: Query) -> Answer:
        """Begin to seal, once its title has been typed. It may take minutes, so the answer does not wait for it."""
        name = query.text("id")
        about = self._described(name)
        if about is None:
            raise InvalidQuery("no server describes this campaign now")
        if query.text("title") != about["title"]:
            raise InvalidQuery("type the campaign's title, exactly: sealing cannot be undone")
        if name in self._sealing:
            raise InvalidQuery("it is being sealed already")
        self._sealing.add(name)
        threading.Thread(target=self._seal, args=(name, about["title"]), daemon=True).start()
        return {"started": True}

    def _seal(self, name: str, title: str) -> None:
        try:
            found, asked = at_both.seal(self._patient, name)
            self._note(f"sealed {title!r}: {found['count']} uploads, asked of server {asked}")
        except Problem as problem:
            self._note(f"not sealed, {title!r}: {problem.detail}")
        except Exception as error:
            self._note(f"not sealed, {title!r}: a fault of the console ({type(error).__name__})")
        finally:
            self._sealing.discard(name)

    def confirm(self, query: Query) -> Answer:
        """Erase what sealing left out, at both servers."""
        erased = [r.call("POST", f"/v1/campaigns/{query.text('id')}/confirm").json()["erased"] for r in self._quick]
        self._note(f"erased what was left out of {query.text('id')}: {erased[0]} and {erased[1]} uploads")
        return {"erased": erased}

    def _note(self, what: str) -> None:
        when = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        self._done.append({"time": when, "what": what})


def certificate_end(url: str, ca: Path) -> str | None:
    """When a server's certificate ends, or None if it cannot be known now."""
    from cryptography import x509

    parts = urlsplit(url)
    try:
        text = ssl.get_server_certificate(
            (parts.hostname or "", parts.port or 443), ca_certs=str(ca), timeout=CONNECT_S
        )
        end = x509.load_pem_x509_certificate(text.encode()).not_valid_after_utc
    except (OSError, ValueError):
        return None
    return end.strftime("%Y-%m-%d")


def next_step(rows: list[dict[str, Any] | None], known: list[bool], sealing: bool) -> str:
    """What an operator should do next, in words."""
    for number, row in enumerate(rows):
        if not known[number]:
            return f"server {number} cannot be reached: find out why"
        if row is None:
            return f"create it at server {number} too"
    if sealing:
        return "being sealed"
    found = [row for row in rows if row is not None]
    states = {row["state"] for row in found}
    if states == {"open"}:
        return _next_open(found)
    if states != {"sealed"}:
        return "sealing was begun: repeat it until both are sealed"
    phases = {row.get("phase") for row in found}
    if None in phases:
        return "sealed"  # of a list, in which servers say no more
    if "failed" in phases:
        return "the evaluation failed: see the servers' logs"
    if phases != {"ready"}:
        done = min(float(row.get("progress", 0)) for row in found)
        return f"being evaluated, {100 * done:.0f} %"
    return "analysts can ask"


def _next_open(rows: list[dict[str, Any]]) -> str:
    fewest = min(row["uploads"] for row in rows)
    least = rows[0].get("min_uploads")
    if least is None:
        return "open"
    if fewest < least:
        return f"wait: {fewest} of at least {least} uploads"
    agreed = [str(number) for number, row in enumerate(rows) if row.get("agreed")]
    if agreed:
        return f"server {agreed[0]} has its operator's word; the other one's is missing"
    return "seal it when all have sent"
