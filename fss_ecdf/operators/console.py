"""What `fss-server console` shows: both servers' health and certificates, their campaigns, sites, budgets and logs.

A server that cannot be reached is unknown: no number stands for it. Operators' tokens stay in this program. An
operator of one server sees of the other one what everybody may (does it answer, when does its certificate end) and what
the own server is told by it.
"""

import argparse
import ssl
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import InvalidQuery, Problem
from fss_ecdf.campaign.status import Status, StatusProblem
from fss_ecdf.cli.common import OK
from fss_ecdf.operators import servers as at_both
from fss_ecdf.operators.commands import operator_file
from fss_ecdf.operators.console_actions import CONNECT_S, ConsoleActions, Servers, campaign_id
from fss_ecdf.operators.next_steps import next_step
from fss_ecdf.operators.servers import ServerClient
from fss_ecdf.operators.site_commands import by_site
from fss_ecdf.pages.console import console_page
from fss_ecdf.pages.local_server import Answer, Console, Download, Query, Routes
from fss_ecdf.pages.party_page import party_page

MOST_SEEN = 2000  # points of uploads over time that are kept
MOST_ASKED = 25  # campaigns of which the list says the next step; the others' is said when they are opened
MOST_ACTIONS = 300
UNKNOWN = "unknown"
BUTTONS = {
    "seal": "Agree to seal",
    "cancel-seal": "Withdraw agreement",
    "unfreeze": "Unfreeze",
    "discard-excluded": "Discard excluded",
}

Row = dict[str, Any]


def console(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    with Servers.of(operator_file(args)) as servers:
        served = Console(console_page("operator"), Watch(servers, args.out, time.time).routes(), args.port)
        print(f"open once, in a browser on this machine:\n  {served.link}", flush=True)
        print("\nyour tokens stay in this program; end it with Ctrl-C", flush=True)
        try:
            served.serve()
        except KeyboardInterrupt:
            return OK
    return OK


class Watch:
    """Both servers as they are now, and how uploads have grown since this console was started."""

    def __init__(self, servers: Servers, folder: Path, clock: Callable[[], float]) -> None:
        self._servers, self._clock = servers, clock
        self._seen: dict[str, list[list[float | None]]] = defaultdict(list)
        self.acts = ConsoleActions(servers, folder, clock)

    def routes(self) -> Routes:
        looks = {"overview": self.overview, "campaign": self.campaign, "actions": self.actions, "page": self.page}
        return Routes(get={f"/api/{name}": look for name, look in looks.items()}, post=self.acts.routes())

    def overview(self, _: Query) -> Answer:
        """Servers, and campaigns with where they stand at each."""
        rows: dict[str, list[Row | None]] = {}
        cards = [self._card(role, rows) for role in (0, 1)]
        steps = _Steps(self._servers, cards, self.acts.sealing)
        campaigns = []
        for name, found in rows.items():
            step = steps.of(name, found)
            uploads = [None if row is None else row["uploads"] for row in found]
            self._seen[name] = _grown(self._seen[name], [self._clock(), *uploads])
            title = next((row["title"] for row in found if row and "title" in row), "")
            campaigns.append({"id": name, "title": title, "servers": found, "next": step})
        return {"servers": cards, "campaigns": campaigns, "done": self.acts.done[::-1]}

    def _card(self, role: int, rows: dict[str, list[Row | None]]) -> Row:
        """One server at a glance; its campaigns are added to the rows, if it is ours to ask."""
        place, remote = self._servers.place(role), self._servers.quick_of(role)
        card: Row = {"number": role, "url": place and place.url, "mine": remote is not None, "listed": False}
        if place is None:
            return {**card, "health": UNKNOWN, "detail": "the operator file does not name it", "certificate": None}
        asked = remote or next(other for other in self._servers.peer_clients if other.number == role)
        card |= {"certificate": certificate_end(place.url, place.ca), **_health(asked)}
        if remote is not None and card["health"] == "ready":
            try:
                for row in remote.json("GET", "/v1/campaigns"):
                    rows.setdefault(row["id"], [None, None])[role] = row
                card["listed"] = True
            except Problem as problem:
                card["detail"] = problem.detail
        return card

    def campaign(self, query: Query) -> Answer:
        """One campaign: what it is, where it stands at each server, its sites, uploads over time, and the budget."""
        name = campaign_id(query)
        statuses = self._statuses(name)
        own = [remote.number for remote in self._servers.status_clients]
        known = [(role, status) for role in own if isinstance(status := statuses[role], Status)]
        sites = [(role, [site.model_dump() for site in status.sites or ()]) for role, status in known]
        first = statuses[own[0]]
        step = next_step(first, button) if isinstance(first, Status) else f"server {own[0]} says: {first.detail}"
        return {
            "about": self._described(name),
            "statuses": [status.fields() for status in statuses],
            "roles": own,
            "sites": [_site(id, both, own) for id, both in by_site(sites).items()],
            "seen": self._seen[name],
            "budgets": [self._budget(role, name) for role in (0, 1)],
            "next": "being sealed" if name in self.acts.sealing else step,
        }

    def _statuses(self, name: str) -> list[Status | StatusProblem]:
        """Of both servers; of one that is not ours, what ours says of it."""
        clients = self._servers.status_clients
        own = dict(zip([client.number for client in clients], at_both.statuses(clients, name), strict=True))
        if len(own) == 1:
            ((role, mine),) = own.items()
            nothing = StatusProblem(problem=UNKNOWN, detail="only the other server could say")
            own[1 - role] = (mine.peer if isinstance(mine, Status) else None) or nothing
        return [own[0], own[1]]

    def _described(self, name: str) -> Row | None:
        for remote in self._servers.status_clients:
            try:
                made = remote.campaign(name)
            except Problem:
                continue
            fields = made.model_dump(mode="json", by_alias=True)
            more = {"digest": to_base64url(made.digest), "bits": made.bits, "total_epsilon": made.total_epsilon}
            return {**fields, **more}
        return None

    def _budget(self, role: int, name: str) -> Row | None:
        remote = self._servers.quick_of(role)
        if remote is None:
            return None
        try:
            found: Row = remote.json("GET", f"/v1/campaigns/{name}/budget")
        except Problem:
            return None
        return found

    def actions(self, query: Query) -> Answer:
        """What operators did at one server, by its own log."""
        remote = self._servers.quick_of(query.whole("server", 0))
        if remote is None:
            raise InvalidQuery("the log of the other organisation's server is its operator's")
        found: Row = remote.json("GET", "/v1/actions", params={"last": MOST_ACTIONS})
        return found

    def page(self, query: Query) -> Answer:
        """The party's page, to be saved."""
        name = campaign_id(query)
        made = at_both.agreed(self._servers.status_clients, name)
        text = party_page(made, [f"{remote.url}/v1/campaigns/{name}" for remote in self._servers.status_clients])
        return Download("party.html", "text/html; charset=utf-8", text.encode())


@dataclass
class _Steps:
    """The next step of each campaign of a list. Asking stops once a server turned out to be away."""

    servers: Servers
    cards: list[Row]
    sealing: set[str]
    asked: int = 0

    def of(self, name: str, found: list[Row | None]) -> str:
        if name in self.sealing:
            return "being sealed"
        for card in self.cards:
            if card["mine"] and not card["listed"]:
                return f"server {card['number']} cannot be asked: find out why"
            if card["mine"] and found[card["number"]] is None:
                return f"create it at server {card['number']} too"
        if self.asked == MOST_ASKED:
            return "open it to see"
        self.asked += 1
        mine = self.servers.status_clients[0]
        status = at_both.statuses([mine], name)[0]
        if isinstance(status, StatusProblem):
            return status.detail
        if isinstance(status.peer, StatusProblem) and status.peer.problem == "peer-unavailable":
            self.asked = MOST_ASKED
        elif isinstance(status.peer, Status) and len(self.servers.status_clients) == 1:
            found[1 - mine.number] = status.peer.fields()
        return next_step(status, button)


def button(what: str) -> str:
    """How something is done here; what the console does not do is typed."""
    return f"press “{BUTTONS[what]}”" if what in BUTTONS else f"type fss-server campaign {what}"


def _grown(seen: list[list[float | None]], now: list[float | None]) -> list[list[float | None]]:
    """With one more point; of a time in which nothing changes, its two ends."""
    still = [row[1:] for row in seen[-2:]] == [now[1:]] * 2
    return [*(seen[:-1] if still else seen), now][-MOST_SEEN:]


def _health(remote: ServerClient) -> Row:
    try:
        return {"health": remote.json("GET", "/readyz")["status"], "detail": ""}
    except Problem as problem:
        away = problem.code == "peer-unavailable"
        return {"health": UNKNOWN if away else "not ready", "detail": problem.detail}


def _site(name: str, both: dict[int, Row], own: list[int]) -> Row:
    """A site at each of our servers: None where it is not there, or not known."""
    about: Row = {"id": name, "label": next(iter(both.values()))["label"]}
    for key in ("state", "quota", "uploads"):
        about[key] = [both[role][key] if role in both else None for role in own]
    return about


def certificate_end(url: str, ca: Path | None) -> str | None:
    """When a server's certificate ends, or None if it cannot be known now."""
    from cryptography import x509

    parts = urlsplit(url)
    try:
        text = ssl.get_server_certificate(
            (parts.hostname or "", parts.port or 443), ca_certs=None if ca is None else str(ca), timeout=CONNECT_S
        )
        end = x509.load_pem_x509_certificate(text.encode()).not_valid_after_utc
    except (OSError, ValueError):
        return None
    return end.strftime("%Y-%m-%d")
