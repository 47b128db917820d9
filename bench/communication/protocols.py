"""The three protocols, run for real: ours through the dealer, the pointwise and the one-hot one through theirs."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import numpy as np
from httpcore import AnyIOBackend

import dealer
from bench.communication import formulas, onehot, pointwise
from bench.communication.traffic import OURS, BaselinePair, Counted, Meter, Run
from dealer.key_pairs import Rand
from fss_ecdf.campaign.campaign import Campaign, Positions
from fss_ecdf.demo.pointwise import party_bytes as pointwise_bytes
from tests.harness.proxy import Count
from tests.harness.server_pair import LivePair, commitments, name

Progress = Callable[[int], object]
Secrets = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Study:
    """What every protocol is run on: a campaign, each party's position, the thresholds asked, and randomness."""

    campaign: Campaign
    values: Sequence[int]
    asked: Sequence[int]
    rand: Rand
    keep_alive: bool = True
    progress: Progress = lambda _: None

    def about(self, protocol: str) -> dict[str, object]:
        sizes = {"n": len(self.values), "bits": self.campaign.bits, "queries": len(self.asked)}
        return {"protocol": protocol, "keep_alive": self.keep_alive, **sizes}


def study_campaign(bits: int, id: bytes) -> Campaign:
    grid = {"kind": "linear", "values": "integer", "from": 0, "to": (1 << bits) - 1, "step": 1}
    about = {
        "title": "Waiting time",
        "question": "How many days did your patient wait?",
        "server_commitments": commitments(id),
    }
    return Campaign.from_dict(
        {"id": id, **about, "variables": [{"name": "waiting time", "grid": grid}], "epsilon": 1.0, "min_uploads": 1}
    )


@contextmanager
def both_pairs(folder: Path) -> Iterator[tuple[Counted, Counted]]:
    """Our servers and the baselines' ones, all running, each pair behind proxies."""
    with ExitStack() as stack:
        ours = stack.enter_context(Counted(LivePair(folder / "ours")))
        yield ours, stack.enter_context(Counted(BaselinePair(folder / "baseline")))


def run_ours(servers: Counted, study: Study) -> Run:
    """Every party reads the campaign at both servers and uploads one key to each; sealing, release, questions."""
    campaign, pair = study.campaign, servers.pair
    pair.create(campaign)
    meter = Meter(servers)
    for number, value in enumerate(study.values):
        receipt = pair.folder / name(campaign) / f"{number}.json"
        token, ca = pair.upload_tokens[campaign.id], pair.folder / "ca.pem"
        with dealer.ServerPair(servers.urls(campaign), token, ca, digest=campaign.digest) as sites:
            dealer.upload(
                Positions(np.array([value]), 0, 0), sites.fetch_campaign(), sites, receipt=receipt, rand=study.rand
            )
        study.progress(1)
    pair.seal(campaign)
    _wait_for_curves(pair, campaign)
    answers = asyncio.run(_questions(servers, study))
    n = len(study.values)
    predicted = {"party": n * formulas.ours_party(campaign), "peer": formulas.ours_peer(campaign, n)}
    return meter.run(predicted, answers, **study.about(OURS))


def _wait_for_curves(pair: LivePair, campaign: Campaign, seconds: float = 120) -> None:
    """By the servers' logs: asking for their status would make them talk to each other."""
    until, ready = time.monotonic() + seconds, {"event": "curve-ready", "campaign": name(campaign)}
    for role in (0, 1):
        while not any(ready.items() <= event.items() for event in pair.events(role)):
            assert time.monotonic() < until, pair.log(role)
            time.sleep(0.02)


async def _questions(servers: Counted, study: Study) -> list[int]:
    async with servers.asking(study.campaign, study.keep_alive) as ask:
        return [await ask(t) for t in study.asked]


class _Parties:
    """Parties of a baseline: each with its own client, and so with its own connections."""

    def __init__(self, servers: Counted, study: Study, stack: AsyncExitStack) -> None:
        self._study, self._servers, self._stack = study, servers, stack
        self._urls = [url + "/uploads" for url in servers.urls(study.campaign)]

    async def start(self) -> list[tuple[int, bytes, httpx.AsyncClient]]:
        token = self._servers.pair.upload_tokens[self._study.campaign.id]
        return [
            (
                value,
                self._study.rand(pointwise.PARTY_BYTES),
                await self._stack.enter_async_context(self._servers.client(token, self._study.keep_alive)),
            )
            for value in self._study.values
        ]

    async def send(self, client: httpx.AsyncClient, messages: tuple[bytes, bytes]) -> None:
        """One message to each server, at the same time."""
        sent: list[Awaitable[httpx.Response]] = [
            client.post(url, content=data, headers={"Content-Type": "application/octet-stream"})
            for url, data in zip(self._urls, messages, strict=True)
        ]
        for response in await asyncio.gather(*sent):
            assert response.status_code == 204, response.text


def run_pointwise(servers: Counted, study: Study, noise: Secrets) -> Run:
    """For every question, every party sends a share to each server; then the analyst asks."""
    study = _anew(servers, study, pointwise.NAME, noise)
    meter = Meter(servers)
    answers = asyncio.run(_pointwise(servers, study))
    party = 2 * len(study.values) * pointwise_bytes(len(study.asked))
    predicted = {"party": party, "peer": formulas.each_query_peer(study.asked)}
    return meter.run(predicted, answers, **study.about(pointwise.NAME))


async def _pointwise(servers: Counted, study: Study) -> list[int]:
    answers = []
    async with AsyncExitStack() as stack:
        ask = await stack.enter_async_context(servers.asking(study.campaign, study.keep_alive))
        parties = _Parties(servers, study, stack)
        people = await parties.start()
        for t in study.asked:
            await asyncio.gather(*(parties.send(c, pointwise.split(x, t, id, study.rand)) for x, id, c in people))
            answers.append(await ask(t))
            study.progress(len(people))
    return answers


def run_onehot(servers: Counted, study: Study, noise: Secrets) -> Run:
    """Every party uploads its whole vector, once; then the analyst asks."""
    study = _anew(servers, study, onehot.NAME, noise)
    meter = Meter(servers)
    answers = asyncio.run(_onehot(servers, study))
    party = len(study.values) * sum(formulas.onehot_party(study.campaign, role) for role in (0, 1))
    predicted = {"party": party, "peer": formulas.each_query_peer(study.asked)}
    return meter.run(predicted, answers, **study.about(onehot.NAME))


async def _onehot(servers: Counted, study: Study) -> list[int]:
    async with AsyncExitStack() as stack:
        parties = _Parties(servers, study, stack)
        for x, id, client in await parties.start():
            await parties.send(client, onehot.split(x, study.campaign, id, study.rand))
            study.progress(1)
    return await _questions(servers, study)


def _anew(servers: Counted, study: Study, protocol: str, noise: Secrets) -> Study:
    """The same study under an id of its own, so that baselines can run it often; the noise does not depend on it."""
    assert isinstance(servers.pair, BaselinePair)
    campaign = Campaign.from_dict(study.campaign.model_dump(by_alias=True) | {"id": secrets.token_bytes(32)})
    servers.pair.hold(protocol, campaign, noise)
    return replace(study, campaign=campaign)


def bare_connections(servers: Counted, count: int) -> Count:
    """What connections cost that carry no request: TCP payload of the handshake, the tickets and the farewell."""
    proxy = servers.party[0]
    before = proxy.settled()
    asyncio.run(_connect(proxy.port, servers, count))
    return proxy.settled() - before


async def _connect(port: int, servers: Counted, count: int) -> None:
    """As httpx does it. The pause is for the server's tickets, which come after the client is done."""
    backend = AnyIOBackend()
    for _ in range(count):
        plain = await backend.connect_tcp("127.0.0.1", port)
        stream = await plain.start_tls(servers.pair.context, "127.0.0.1")
        await asyncio.sleep(0.05)
        await stream.aclose()
