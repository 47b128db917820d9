"""Two processes of one server at the same campaign: one seals while the other one is asked to open it again."""

import asyncio
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from fss_ecdf.campaign.binary_messages import upload_rows
from fss_ecdf.campaign.errors import NotReady, Problem
from servers.lifecycle import seal
from servers.server import Server
from servers.settings import load
from servers.storage import admission
from servers.storage.waves import SEALED
from tests.harness.postgres import Postgres
from tests.harness.server_pair import LivePair, envelopes
from tests.servers.conftest import new_campaign


class Pause:
    """A hook that stops at one point until it is told to go on."""

    def __init__(self, point: str) -> None:
        self._point, self.reached, self.go = point, threading.Event(), threading.Event()

    def __call__(self, point: str) -> None:
        if point == self._point:
            self.reached.set()
            assert self.go.wait(60)


def test_what_one_process_seals_another_one_does_not_open_in_between(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealed there and open here would not fit again: what is withdrawn here is in the set there."""
    monkeypatch.setattr(seal, "TURN_S", 0.2)
    pair, campaign = LivePair(tmp_path), new_campaign()
    config = pair.folder / "server0" / "server.toml"
    config.write_text(f'database = "{postgres.database()}"\n' + config.read_text())
    sealing, opening = Pause("seal-named-there"), Pause("reopen-here")
    first, second = (Server(load(config), lambda: datetime.now(UTC), hook) for hook in (sealing, opening))
    ended: list[Problem | None] = []
    refused: list[Problem] = []

    async def run_seal() -> None:
        try:
            await first.sealer.seal(campaign)
            ended.append(None)
        except Problem as problem:
            ended.append(problem)
        await first.stop()

    async def run_reopen() -> None:
        try:
            await second.sealer.unfreeze(campaign)
        except Problem as problem:
            refused.append(problem)
        await second.stop()

    try:
        pair.start(1)
        pair.wait(1)
        pair.create(campaign, roles=[1])
        ours, theirs = envelopes(campaign, np.arange(15))
        first.storage.campaigns.add(campaign, "0" * 64, [])
        _, rows = upload_rows(ours, campaign, 0)
        assert first.storage.uploads.add([admission.NewUploads(campaign.id, rows)]) == [[]]
        assert pair.upload(1, campaign, theirs).json()["failures"] == []
        pair.agree(campaign, 1)
        sealer = threading.Thread(target=lambda: asyncio.run(run_seal()))
        opener = threading.Thread(target=lambda: asyncio.run(run_reopen()))
        sealer.start()
        assert sealing.reached.wait(30)
        opener.start()
        until = time.monotonic() + 30  # it is refused; or, where nothing keeps it, it is open here now
        while opener.is_alive() and not opening.reached.wait(0.05):
            assert time.monotonic() < until
        sealing.go.set()
        sealer.join(30)
        opening.go.set()
        opener.join(30)
        assert ended == [None]
        assert [type(problem) for problem in refused] == [NotReady]
        assert first.storage.waves.get(campaign.id).state == SEALED
    finally:
        first.storage.close()
        pair.stop(1)
