"""What passes between parties, servers and the analyst: server pairs behind counting proxies, and a meter.

Wire bytes are those the proxies saw; bodies are those the servers' own logs report.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx

from bench.communication.server import Holding
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.net import https
from fss_ecdf.net.tokens import hash_token, new_token
from fss_ecdf.operators.setup import write_secret
from servers.peer import COMPARE
from tests.harness.proxy import Count, Proxy
from tests.harness.server_pair import LivePair, name

OURS = "ours"
# Early: servers that wait for each other ask a few times, and compare their histories now and then, by chance.
KINDS = ("party", "peer", "early", "analyst")
NOT_YET = 503


@dataclass(frozen=True)
class Run:
    """One run of one protocol: bytes and connections by who talks to whom, and what was answered."""

    protocol: str
    keep_alive: bool
    n: int
    bits: int
    queries: int
    party: tuple[Count, Count]  # with server 0, with server 1
    peer: Count
    analyst: Count
    bodies: dict[str, int]
    predicted: dict[str, int]
    requests: dict[str, int]
    answers: list[int]

    @property
    def per_party(self) -> float:
        return (self.party[0].bytes + self.party[1].bytes) / self.n

    @property
    def body_per_party(self) -> float:
        return self.bodies["party"] / self.n

    @property
    def total(self) -> int:
        return self.party[0].bytes + self.party[1].bytes + self.peer.bytes + self.analyst.bytes

    @property
    def round_trips(self) -> float:
        """How often a party waits: connecting takes two round trips (TCP, TLS 1.3), a request one; both servers at
        the same time, but that ours reads the campaign at one server and then asks the other for its digest."""
        connections = self.party[0].connections + self.party[1].connections
        if self.protocol == OURS:
            return (2 * connections + 3 * self.requests["party"] / 4) / self.n
        return (2 * connections + self.requests["party"]) / 2 / self.n


class BaselinePair(LivePair):
    """Two servers of the pointwise and one-hot protocols."""

    program = ("bench.communication.server",)

    def hold(self, protocol: str, campaign: Campaign, secrets_of: Sequence[tuple[bytes, bytes]]) -> None:
        """Tell both servers of a campaign, with the seed and context of each server's noise."""
        token = self.upload_tokens[campaign.id] = new_token("upload")
        for role, (seed, context) in enumerate(secrets_of):
            holding = Holding(
                protocol=protocol,  # type: ignore[arg-type]  # checked when the model is made
                campaign=campaign.model_dump(mode="json", by_alias=True),
                upload_token=hash_token(token),
                noise_seed=seed.hex(),
                noise_context=context.hex(),
            )
            data = self.folder / f"server{role}" / "data"
            data.mkdir(exist_ok=True)
            write_secret(data / f"{name(campaign)}.json", holding.model_dump_json())


class Counted:
    """A pair of servers behind proxies: one for parties and one for the peer of each, one for the analyst."""

    def __init__(self, pair: LivePair) -> None:
        self.pair = pair
        self.party = tuple(Proxy(port) for port in pair.ports)
        self.peer = tuple(Proxy(port) for port in pair.ports)
        self.analyst = Proxy(pair.ports[0])
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for proxy in (*self.party, *self.peer, self.analyst):
            self._stack.enter_context(proxy)
        for role in (0, 1):
            self.pair.reach_peer_at(role, self.peer[1 - role].port)
        self._stack.enter_context(self.pair)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def urls(self, campaign: Campaign) -> list[str]:
        """The campaign's addresses, as parties are told them."""
        return [f"{proxy.url}/v1/campaigns/{name(campaign)}" for proxy in self.party]

    def client(self, token: str, keep_alive: bool, base_url: str = "") -> httpx.AsyncClient:
        """A connection that is kept alive stays open for the whole run, however slow the machine is."""
        headers = {"Authorization": f"Bearer {token}"} | ({} if keep_alive else {"Connection": "close"})
        client = httpx.AsyncClient(
            base_url=base_url,
            verify=self.pair.context,
            headers=headers,
            limits=httpx.Limits(keepalive_expiry=None),
            timeout=60,
            trust_env=False,
        )
        connection = client.headers["connection"]
        https.lean(client)  # as our own programs do
        if not keep_alive:
            client.headers["connection"] = connection
        return client

    @asynccontextmanager
    async def asking(self, campaign: Campaign, keep_alive: bool) -> AsyncIterator[Callable[[int], Any]]:
        """An analyst at server 0, who asks for one threshold at a time."""
        path = f"/v1/campaigns/{name(campaign)}/ecdf"
        async with self.client(self.pair.servers[0].analyst, keep_alive, self.analyst.url) as client:

            async def ask(threshold: int) -> int:
                response = await client.get(path, params={"at": str(threshold)})
                assert response.status_code == 200, response.text
                count: int = response.json()["counts"][0]
                return count

            yield ask

    def logged(self, role: int) -> int:
        """How long a server's log is. It logs as it answers, so that after one more answer all is there."""
        self.pair.wait(role)
        return len(self.pair.log(role))


def _kind(route: str, status: int | None) -> str | None:
    if "/peer/" in route:
        return "early" if status == NOT_YET or route == COMPARE else "peer"
    if route.endswith("/ecdf"):
        return "analyst"
    return "party" if route in ("/v1/campaigns/{cid}", "/v1/campaigns/{cid}/uploads") else None


class Meter:
    """What passed since it was made."""

    def __init__(self, servers: Counted) -> None:
        self._servers, self._before = servers, self._counts(servers)
        self._logged = [servers.logged(role) for role in (0, 1)]

    @staticmethod
    def _counts(servers: Counted) -> list[Count]:
        party = [proxy.settled() for proxy in servers.party]
        peer = servers.peer[0].count() + servers.peer[1].count()
        return [*party, peer, servers.analyst.settled()]

    def run(self, predicted: dict[str, int], answers: list[int], **about: Any) -> Run:
        bodies, requests = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
        for role in (0, 1):
            self._servers.logged(role)
            for event in self._servers.pair.events(role, self._logged[role]):
                kind = _kind(event.get("route", ""), event.get("status"))
                if kind is not None:
                    bodies[kind] += event["received"] + event["sent"]
                    requests[kind] += 1
        now = self._counts(self._servers)
        first, second, peer, analyst = (a - b for a, b in zip(now, self._before, strict=True))
        return Run(
            **about,
            party=(first, second),
            peer=peer,
            analyst=analyst,
            bodies=bodies,
            predicted=predicted,
            requests=requests,
            answers=answers,
        )
