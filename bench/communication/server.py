"""python -m bench.communication.server --config FILE: one of two servers of the pointwise and the one-hot protocol.

The same HTTPS stack, noise, answers and messages between servers as ours; only what parties send differs, and that
nothing is stored. What it holds for a campaign stands in a file in its data folder (`Holding`).
"""

import argparse
import hmac
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from bench.communication import onehot, pointwise
from fss.field import Words, add, decode, encode, prefix_sum
from fss_ecdf.campaign.binary_messages import SHARES_TYPE, ShareMessage, decode_shares, encode_shares
from fss_ecdf.campaign.campaign import Campaign, check_digest
from fss_ecdf.campaign.errors import (
    InvalidPeerResponse,
    InvalidQuery,
    NotAuthenticated,
    UnknownCampaign,
    UploadConflict,
)
from fss_ecdf.campaign.json_messages import ShareQuery, read
from servers.api import auth
from servers.api.app import equip
from servers.api.requests import as_json, campaign_id
from servers.api.serve import listen, serve
from servers.peer import PeerClient
from servers.release import query_results
from servers.release.noise import NoiseTree
from servers.settings import Settings, load
from servers.storage.entries import set_checksum

Positions = NDArray[np.int64]


class Holding(BaseModel):
    """A campaign as this server was told of it; seed and context decide its noise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    protocol: Literal["pointwise", "one-hot"]
    campaign: dict[str, Any]
    upload_token: str
    noise_seed: str
    noise_context: str


@dataclass
class Sum:
    """The sum of what some parties sent, and who they were."""

    elements: Words
    parties: set[bytes] = field(default_factory=set)

    def add(self, party: bytes, elements: Words) -> None:
        if party in self.parties:
            raise UploadConflict("this party has sent its share already")
        self.parties.add(party)
        self.elements = add(self.elements, elements)

    @property
    def checksum(self) -> bytes:
        return set_checksum(b"".join(sorted(self.parties)))


class Held:
    """Everything one server knows of one campaign."""

    def __init__(self, holding: Holding, role: int) -> None:
        self.campaign = Campaign.from_dict(holding.campaign)
        self.protocol, self.role, self._token = holding.protocol, role, holding.upload_token
        seed, context = bytes.fromhex(holding.noise_seed), bytes.fromhex(holding.noise_context)
        self._noise = NoiseTree(seed, server=role, covers=context, mechanism=self.campaign.noise)
        self._points: dict[int, Sum] = {}
        self._vector = Sum(np.zeros(1 << self.campaign.bits if holding.protocol == onehot.NAME else 0, np.uint64))

    def admit(self, request: Request) -> None:
        if not hmac.compare_digest(auth.presented(request), self._token):
            raise NotAuthenticated("the token is not known for this campaign")

    def take(self, data: bytes) -> None:
        if self.protocol == onehot.NAME:
            self._vector.add(*onehot.decode(data, self.campaign, self.role))
            return
        share = pointwise.decode(data, 1 << self.campaign.bits)
        point = self._points.setdefault(share.position, Sum(np.zeros(1, np.uint64)))
        point.add(share.party, share.element)

    def at(self, positions: Positions) -> Sum:
        """Shares of the counts, from one set of parties."""
        if self.protocol == onehot.NAME:
            return Sum(prefix_sum(self._vector.elements)[positions], self._vector.parties)
        known = [self._points.get(int(t)) for t in positions]
        points = [p for p in known if p is not None]
        if len(points) < len(known) or any(p.parties != points[0].parties for p in points):
            raise InvalidQuery("the same parties must answer a question before it can be asked")
        return Sum(np.concatenate([p.elements for p in points]), points[0].parties)

    def noised(self, positions: Positions) -> Words:
        return add(self.at(positions).elements, encode(self._noise.at(positions)))


class Node:
    """One baseline server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.peer = PeerClient(settings.peer, settings.peer_token(), role=settings.server)
        self._held: dict[str, Held] = {}

    def held(self, cid: str) -> Held:
        if cid not in self._held:
            campaign_id(cid)
            path = self.settings.data / f"{cid}.json"
            if not path.is_file():
                raise UnknownCampaign("this server does not have the campaign")
            self._held[cid] = Held(Holding.model_validate_json(path.read_text()), self.settings.server)
        return self._held[cid]

    async def counts(self, held: Held, positions: Positions) -> Positions:
        """Both servers' noised shares of the same parties, added."""
        mine = held.at(positions)
        asked = ShareQuery(digest=held.campaign.digest, positions=positions.tolist()).to_json().encode()
        answer = await self.peer.noisy_shares(held.campaign, "/shares", asked, positions.size)
        theirs = decode_shares(answer, held.campaign, 1 - self.settings.server, positions.size)
        if (theirs.key_set, theirs.uploads) != (mine.checksum, len(mine.parties)):
            raise InvalidPeerResponse("the other server answers for other parties")
        return decode(add(held.noised(positions), theirs.elements))


def build_app(settings: Settings) -> FastAPI:
    node = Node(settings)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        await node.peer.close()

    app = FastAPI(lifespan=life)

    @app.get("/readyz")
    async def readyz() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/v1/campaigns/{cid}/uploads")
    async def upload(cid: str, request: Request) -> Response:
        held = node.held(cid)
        held.admit(request)
        held.take(await request.body())
        return Response(status_code=204)

    @app.post("/v1/peer/campaigns/{cid}/shares")
    async def peer_shares(cid: str, request: Request) -> Response:
        auth.require_role(request, settings.tokens, auth.PEER)
        held = node.held(cid)
        query = read(ShareQuery, await request.body())
        check_digest(held.campaign.digest, query.digest)
        positions = np.array(query.positions, np.int64)
        of = held.at(positions)
        shares = ShareMessage(settings.server, of.checksum, len(of.parties), held.noised(positions))
        return Response(encode_shares(held.campaign, shares), media_type=SHARES_TYPE)

    @app.get("/v1/campaigns/{cid}/ecdf")
    async def ecdf(cid: str, request: Request, at: Annotated[str, Query()]) -> JSONResponse:
        auth.require_role(request, settings.tokens, auth.ANALYST)
        held = node.held(cid)

        async def count_at(positions: Positions) -> Positions:
            return await node.counts(held, positions)

        asked, campaign = at.split(","), held.campaign
        n = len(held.at(campaign.variable.grid.index_at(asked)).parties)
        return as_json(
            await query_results.ecdf(query_results.Query(campaign, campaign.strata[0], n, count_at, {}), asked)
        )

    equip(app)
    return app


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.communication.server", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    settings = load(parser.parse_args(argv).config)
    serve(build_app(settings), settings, listen(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
