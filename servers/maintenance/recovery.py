"""`fss-server recovery`: what an operator decides about a database that is older than what this server did.

Either the right database is put in place (a newer backup, the other replica), and the server goes on by itself; or the
operator goes on with the older one, in a new generation of its history, which the other server takes for that.
Campaigns whose uploads the other server has fixed since cannot go on here: to seal them once more would be a second
release.
"""

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

import httpx

from fss_ecdf.campaign.campaign import TIME_FORMAT, to_base64url
from fss_ecdf.campaign.errors import InvalidPeerResponse, InvalidQuery, PeerUnavailable, Refused, parse_problem
from fss_ecdf.campaign.json_messages import read
from fss_ecdf.campaign.status import Status
from fss_ecdf.cli.common import UsageError
from fss_ecdf.net.server_identity import Identity
from servers.peer import COMPARE, PeerForCommands
from servers.rollback import HEADER, RollbackGuard, Told
from servers.settings import Settings
from servers.storage.action_log import LoggedAction
from servers.storage.dump import States, present
from servers.storage.history import OWN, PEER, Mark
from servers.storage.storage import Storage
from servers.storage.waves import CHECKING, SEALED

FIXED = (CHECKING, SEALED)
ACTION = "recovery"


class Other:
    """The other server, asked from this server's machine."""

    def __init__(self, settings: Settings) -> None:
        self._peer = PeerForCommands(settings)

    def close(self) -> None:
        self._peer.close()

    def _get(self, path: str) -> httpx.Response:
        try:
            return self._peer.get(path)
        except httpx.HTTPError as error:
            raise PeerUnavailable(
                f"the other server cannot be asked ({type(error).__name__}), and only it knows what was done after "
                "this database; try again when it answers"
            ) from None

    def seen(self) -> tuple[Mark, ...]:
        """What it has seen of this server's history, the newest at the end."""
        answer = self._get(COMPARE)
        said = answer.headers.get(HEADER)
        if answer.status_code != 200 or said is None:
            raise InvalidPeerResponse("the other server does not say what it has seen of this one's history")
        return Told.parse(said).seen

    def states(self, states: States) -> States:
        """Where it has the campaigns whose uploads are not fixed here.

        Not of waves that both servers can abandon: one that is checked there, so that nothing of it was released.
        """
        found: States = {}
        for campaign in {campaign for (campaign, _), state in states.items() if state not in FIXED}:
            answer = self._get(f"/v1/peer/campaigns/{to_base64url(campaign)}")
            if answer.status_code == 200:
                status = self._status(answer.content)
                for wave in status.waves:
                    if status.planned_waves is None or not (wave.abandoned or wave.state == CHECKING):
                        found[campaign, wave.number] = wave.state
                continue
            problem = parse_problem(answer.content)
            if problem is None or problem.code not in ("unknown-campaign", "campaign-deleted"):
                raise PeerUnavailable("the other server does not say where its campaigns stand; try again when it does")
        return found

    @staticmethod
    def _status(data: bytes) -> Status:
        try:
            return read(Status, data)
        except InvalidQuery as problem:
            raise InvalidPeerResponse(f"the other server's status is not well-formed: {problem.detail}") from None


def refuse_older(states: States, known: States, who: str, instead: str) -> None:
    """Raise where uploads are not fixed in these states and `who` has them fixed."""
    ours = {campaign for campaign, _ in states}
    for (campaign, wave), fixed in sorted(known.items()):
        state = states.get((campaign, wave), "unknown")
        if campaign in ours and fixed in FIXED and state not in FIXED:
            what = f"wave {wave} of campaign" if wave else "campaign"
            raise Refused(
                f"{what} {to_base64url(campaign)} is {state} here, but {who} has it {fixed}: to seal it once more "
                f"would be a second release about the same people. {instead}"
            )


@dataclass(frozen=True)
class Found:
    """Where both servers stand."""

    why: str | None  # this server is on hold
    since: str | None
    newest: str
    peer_seen: str | None
    peer_problem: str | None


def show(settings: Settings, clock: datetime) -> Found:
    with closing(_Opened(settings, clock)) as here, closing(Other(settings)) as other:
        seen = other.seen()
        wrong = next(filter(None, map(here.guard.lost, seen)), None)
        own, peer = here.storage.history.standing(OWN), here.storage.history.standing(PEER, here.peer_key)
        place = seen[-1].place if seen else None
        return Found(own.problem or wrong, own.since, here.guard.newest().place, place, peer.problem)


def accept(settings: Settings, now: datetime) -> str:
    """Go on with the database as it is; returns the history's new place. Refused where that is not possible."""
    with closing(_Opened(settings, now)) as here, closing(Other(settings)) as other:
        seen = other.seen()
        here.guard.look()
        wrong = here.storage.history.standing(OWN).problem or next(filter(None, map(here.guard.lost, seen)), None)
        if wrong is None:
            raise UsageError("this server is not on hold, so there is nothing to decide")
        states = present(settings.database_url).waves
        instead = "Put a newer database in place, or delete the campaign here: fss-server campaign delete"
        refuse_older(states, other.states(states), "the other server", instead)
        before = here.guard.newest().place
        place = here.guard.accept(seen).place
        about = f'{{"from": "{before}", "to": "{place}"}}'
        here.storage.actions.add(LoggedAction(now.strftime(TIME_FORMAT), ACTION, "", "done", about))
        return place


class _Opened:
    """This server's database, beside a server that may run on it."""

    def __init__(self, settings: Settings, now: datetime) -> None:
        self.storage, self.peer_key = Storage(settings.database_url, look=True), settings.tokens.peer_signing_key
        identity = Identity.load(settings.identity_file, settings.server)
        self.guard = RollbackGuard(self.storage.history, identity, self.peer_key, settings.data, lambda: now)

    def close(self) -> None:
        self.storage.close()
