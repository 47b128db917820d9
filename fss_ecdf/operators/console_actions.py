"""What `fss-server console` does when a button is pressed, at all servers of its operator; and what it has done.

Whatever cannot be undone needs a word typed: a campaign's title, a site's label. A new token of a site is answered
once, to be shown, after its sheet is on disk; it is kept nowhere else.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fss_ecdf.campaign.campaign import ID_BYTES, Campaign, from_base64url, to_base64url
from fss_ecdf.campaign.errors import AgreementPending, InvalidQuery, Problem
from fss_ecdf.cli.common import UsageError
from fss_ecdf.net.tokens import hash_token
from fss_ecdf.operators import joining_sheet, site_registry
from fss_ecdf.operators import servers as at_both
from fss_ecdf.operators.servers import ServerAddress, ServerClient
from fss_ecdf.operators.site_registry import Site, SiteRegistry
from fss_ecdf.pages.local_server import Answer, Asked, Query

MOST_DONE = 200
CONNECT_S = 5.0


@dataclass(frozen=True)
class Servers:
    """Those of an operator file: ours to look at quickly and to wait for, another's, and where both are."""

    status_clients: list[ServerClient]
    action_clients: list[ServerClient]
    peer_clients: list[ServerClient]
    places: list[ServerAddress]

    @staticmethod
    @contextmanager
    def of(file: Path) -> "Iterator[Servers]":
        with at_both.clients_of(file, CONNECT_S) as quick, at_both.clients_of(file) as patient, ExitStack() as opened:
            places, ours = at_both.addresses_of(file), {remote.number for remote in quick}
            others = [ServerClient(p.server, p.url, p.ca, None, CONNECT_S) for p in places if p.server not in ours]
            yield Servers(quick, patient, [opened.enter_context(closing(other)) for other in others], places)

    def quick_of(self, role: int) -> ServerClient | None:
        return next((remote for remote in self.status_clients if remote.number == role), None)

    def place(self, role: int) -> ServerAddress | None:
        return next((place for place in self.places if place.server == role), None)


def campaign_id(query: Query) -> str:
    """Of a question. It becomes part of addresses and of a folder's name, so nothing else passes."""
    try:
        return to_base64url(from_base64url(query.text("id"), ID_BYTES, "a campaign's id"))
    except ValueError as error:
        raise InvalidQuery(str(error)) from None


class ConsoleActions:
    """Changes at both servers, each noted; `sealing` are campaigns on which a sealing is under way."""

    def __init__(self, servers: Servers, folder: Path, clock: Callable[[], float]) -> None:
        self._servers, self._folder, self._clock = servers, folder, clock
        self.done: list[dict[str, Any]] = []
        self.sealing: set[str] = set()

    def routes(self) -> dict[str, Asked]:
        acts = {
            "seal": self.seal,
            "retract": self.withdraw_agreement,
            "reopen": self.unfreeze,
            "confirm": self.discard_excluded,
        }
        acts |= {"site": self.site, "token": self.token, "admit": self.admit}
        return {f"/api/{name}": act for name, act in acts.items()}

    def _campaign(self, query: Query) -> Campaign:
        return site_registry.campaign_of(self._servers.status_clients, campaign_id(query))

    def seal(self, query: Query) -> Answer:
        """Begin to seal, once its title has been typed. It may take minutes, so the answer does not wait for it."""
        name, title = campaign_id(query), self._campaign(query).title
        if query.text("typed") != title:
            raise InvalidQuery("type the campaign's title, exactly: sealing cannot be undone")
        if name in self.sealing:
            raise InvalidQuery("it is being sealed already")
        self.sealing.add(name)
        threading.Thread(target=self._seal, args=(name, title), daemon=True).start()
        return {"started": True}

    def _seal(self, name: str, title: str) -> None:
        try:
            found, asked = at_both.seal(self._servers.action_clients, name)
            self._note(f"sealed {title!r}: {found['count']} uploads, asked of server {asked}")
        except AgreementPending:
            self._note(f"agreed to seal {title!r}; the other operator has not agreed yet")
        except Problem as problem:
            self._note(f"not sealed, {title!r}: {problem.detail}")
        except Exception as error:
            self._note(f"not sealed, {title!r}: a fault of the console ({type(error).__name__})")
        finally:
            self.sealing.discard(name)

    def withdraw_agreement(self, query: Query) -> Answer:
        """Withdraw the operator's agreement, while the campaign is not sealed."""
        made = self._campaign(query)
        for remote in self._servers.status_clients:
            remote.call("DELETE", f"/v1/campaigns/{to_base64url(made.id)}/seal")
        self._note(f"withdrew your agreement to seal {made.title!r}")
        return {"operator_agreed": False}

    def unfreeze(self, query: Query) -> Answer:
        """Undo a freeze, at both servers."""
        made = self._campaign(query)
        self._servers.status_clients[0].call("POST", f"/v1/campaigns/{to_base64url(made.id)}/unfreeze")
        self._note(f"unfroze {made.title!r}: uploads continue")
        return {"state": "open"}

    def discard_excluded(self, query: Query) -> Answer:
        """Erase the excluded uploads."""
        made, erased = self._campaign(query), []
        for remote in self._servers.status_clients:
            erased.append(remote.json("POST", f"/v1/campaigns/{to_base64url(made.id)}/discard-excluded")["erased"])
        self._note(f"discarded excluded uploads of {made.title!r}: {' and '.join(map(str, erased))} uploads")
        return {"erased": erased}

    def site(self, query: Query) -> Answer:
        """Pause, resume or revoke a site, or give it another quota; revoked, what it sent can be erased."""
        made, change = self._campaign(query), query.text("change")
        site = self._found(query, made)
        about = dict(site_registry.CHANGES.get(change, {}))
        if change == "quota":
            about = {"quota": query.whole("quota", 0)}
        elif change == "erase":
            about = {**site_registry.CHANGES["revoke"], "withdraw": True}
        if not about:
            raise InvalidQuery(f"a site is paused, resumed, revoked, erased or given a quota, not {change[:40]!r}")
        if change in ("revoke", "erase") and query.text("typed") != site["label"]:
            raise InvalidQuery("type the site's label, exactly")
        path = f"/v1/campaigns/{to_base64url(made.id)}/sites/{site['id']}"
        answers = site_registry.call_all(self._servers.status_clients, "PATCH", path, about)
        erased = f", {' and '.join(str(a['erased']) for a in answers)} uploads erased" if change == "erase" else ""
        self._note(f"{site['label']!r} is {answers[0]['state']}, quota {answers[0]['quota']}{erased}")
        name = f"{joining_sheet.file_name(site['label'])}-{change}.json"
        return {"file": self._travel(name, made, {"changes": [{"id": site["id"], **about}]})}

    def _found(self, query: Query, made: Campaign) -> dict[str, Any]:
        return site_registry.find_site(self._servers.status_clients[0], to_base64url(made.id), query.text("site"))

    def token(self, query: Query) -> Answer:
        """A new token for a site, shown once; the old one opens nothing any more."""
        desk = self._desk(query)
        site = site_registry.rotate_token(desk, self._found(query, desk.campaign))
        self._note(f"{site['label']!r} has a new token, on {desk.sheet_file(site)}")
        new = {"changes": [{"id": site["id"], "token": hash_token(site["token"])}]}
        name = f"{desk.sheet_file(site).stem}-rotate.json"
        return {"sites": [_shown(desk, site)], "file": self._travel(name, desk.campaign, new)}

    def admit(self, query: Query) -> Answer:
        """New sites, a label in each line, each with a token that is shown once."""
        desk = self._desk(query)
        labels = [line.strip() for line in query.text("labels").splitlines() if line.strip()]
        try:
            mine = site_registry.admit(desk, labels, query.whole("quota", 0))
        except UsageError as error:
            raise InvalidQuery(str(error)) from None
        self._note(f"admitted {', '.join(repr(site['label']) for site in mine)}; sheets are in {desk.folder}")
        new = {"sites": [site_registry.public(site) for site in mine]}
        return {
            "sites": [_shown(desk, site) for site in mine],
            "file": self._travel("additions.json", desk.campaign, new),
            "authorities": _authorities(desk),
        }

    def _desk(self, query: Query) -> SiteRegistry:
        name = campaign_id(query)
        return SiteRegistry.of(
            self._servers.status_clients, self._servers.places, name, self._folder / f"sites-{name[:8]}"
        )

    def _travel(self, name: str, made: Campaign, what: dict[str, Any]) -> str | None:
        path = self._folder / f"sites-{to_base64url(made.id)[:8]}" / name
        if len(self._servers.status_clients) == 1:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = site_registry.write_peer_file(self._servers.status_clients, path, made, what)
        return None if written is None else str(written)

    def _note(self, what: str) -> None:
        when = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        self.done = [*self.done, {"time": when, "what": what}][-MOST_DONE:]


def _authorities(desk: SiteRegistry) -> dict[str, str]:
    """The files that go with every sheet: no secret is in them."""
    return {joining_sheet.authority_name(p): p.ca.read_text() for p in desk.places if p.ca is not None}


def _shown(desk: SiteRegistry, site: Site) -> dict[str, str]:
    """What the page shows once."""
    file = desk.sheet_file(site)
    return {
        "label": site["label"],
        "token": site["token"],
        "sheet": desk.sheet(site),
        "name": file.name,
        "file": str(file),
    }
