"""Attacks that try to keep others out, played to their end against servers with the settings that everybody has."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress

import numpy as np
import pytest

from fss_ecdf.campaign.binary_messages import row_bytes
from fss_ecdf.campaign.campaign import Campaign
from servers.api.limits import GRACE_S
from tests.harness import attacks
from tests.harness.attacks import CHUNKED, MINE, OTHERS
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign

pytestmark = pytest.mark.faults

ENOUGH_MB = 400
LONG = 10_000  # uploads of a request that is as long as it may be
SIXTY_MIB = 60 << 20


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePair]:
    """Programs of their own: what they have in memory is theirs."""
    started = LivePair(tmp_path_factory.mktemp("lockouts"))
    started.nursery = None
    with started:
        yield started


@pytest.fixture
def campaign(pair: LivePair) -> Campaign:
    made = new_campaign()
    pair.create(made)
    return made


@pytest.mark.parametrize("length", ["Content-Length: 67108864", "", CHUNKED], ids=["too long", "long", "chunked"])
@pytest.mark.parametrize("sealed", [False, True])
def test_four_uploads_that_stall(pair: LivePair, campaign: Campaign, length: str, sealed: bool) -> None:
    """Of an open campaign or a sealed one: no other request is refused, and the stalled ones are cut in time."""
    attacked = new_campaign()
    pair.create(attacked)
    if sealed:
        pair.upload_values(attacked, np.arange(20))
        pair.seal(attacked)
    began = time.monotonic()
    with attacks.stalled(pair, attacked, length or attacks.announced(attacked, LONG)) as held:
        for source in (MINE, OTHERS):
            seen = attacks.watch(pair, campaign, 50, source)
            assert seen.statuses == {200}
            assert seen.memory_mb < ENOUGH_MB
        many = envelopes(campaign, np.arange(1000) % 10)[0]
        assert attacks.send(pair, campaign, many, MINE)[0] == 200
        expected = 413 if "67108864" in length else 409 if sealed else 408
        assert {attacks.answer(connection)[0] for connection in held} == {expected}
        assert time.monotonic() - began < 3 * GRACE_S + 60


def test_four_uploads_that_drip(pair: LivePair, campaign: Campaign) -> None:
    """960 bytes a minute: a byte now and then does not make a body last."""
    with attacks.stalled(pair, campaign, attacks.announced(campaign, LONG)) as held:
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < 3 * GRACE_S:
                for connection in held:
                    connection.sendall(b"x")
                assert attacks.watch(pair, campaign, 2, MINE).statuses == {200}
                time.sleep(1)
        assert {attacks.answer(connection)[0] for connection in held} == {408}


def flooded(pair: LivePair, campaign: Campaign, rows: int) -> list[int]:
    """What ten who send so many rejected rows again and again get, while 100 honest uploads are stored as ever."""
    body = attacks.numbered(campaign, rows)
    with attacks.flood(pair, campaign, [body] * 10) as answers:
        seen = attacks.watch(pair, campaign, 100)
    assert seen.statuses == {200}
    assert seen.memory_mb < ENOUGH_MB
    assert max(size for _, size in answers) < 1000
    assert attacks.resident_mb(pair) < ENOUGH_MB
    return [status for status, _ in answers]


def test_ten_requests_of_sixty_megabytes_of_rejected_rows(pair: LivePair, campaign: Campaign) -> None:
    """All of them again and again, while 100 honest uploads come from another address."""
    rows = SIXTY_MIB // row_bytes(campaign)
    assert pair.upload(0, campaign, attacks.numbered(campaign, LONG)).status_code == 200
    assert set(flooded(pair, campaign, rows)) <= {0, 413}


def test_as_many_rejected_rows_as_a_request_may_have(pair: LivePair, campaign: Campaign) -> None:
    assert pair.upload(0, campaign, attacks.numbered(campaign, LONG)).status_code == 200
    statuses = set(flooded(pair, campaign, LONG))
    assert statuses <= {409, 429}
    assert 409 in statuses
    assert not [event for event in pair.events(0) if event["event"] == "internal-error"]


def test_withdrawals_without_end(pair: LivePair, campaign: Campaign) -> None:
    """Each empties the database's log; one waits for the other, and uploads for one of them."""
    ids, stop = bytes(range(16)) * 1000, threading.Event()

    def withdraw() -> None:
        with pair.client(0, pair.upload_tokens[campaign.id]) as client:
            while not stop.is_set():
                client.post(f"/v1/campaigns/{name(campaign)}/uploads/withdraw", content=ids)

    threads = [threading.Thread(target=withdraw) for _ in range(20)]
    for thread in threads:
        thread.start()
    try:
        assert attacks.watch(pair, campaign, 50).statuses == {200}
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_answers_that_nobody_reads(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A campaign of many thresholds, asked for by anybody who then does not read: little memory, and an end."""
    started = LivePair(tmp_path_factory.mktemp("readers"))
    started.nursery = None
    started.configure(0, limits__receive_timeout_s="5.0")
    with started as pair:
        large = new_campaign(grid={"kind": "explicit", "at": [i / 8 for i in range(1 << 19)]})
        calm = new_campaign()
        pair.create(large, roles=[0])
        pair.create(calm)
        with pair.client(0) as client:
            whole = client.get(f"/v1/campaigns/{name(large)}")
        assert whole.json()["campaign"] == large.model_dump(mode="json", by_alias=True)
        before = attacks.resident_mb(pair)
        held = [attacks.connect(pair, room=4096) for _ in range(40)]
        for connection in held:
            connection.sendall(f"GET /v1/campaigns/{name(large)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert attacks.watch(pair, calm, 30).statuses == {200}
        assert attacks.resident_mb(pair) - before < 60  # a copy for each would be three times as much
        time.sleep(8)
        for connection in held:
            assert received(connection) < len(whole.content)


def received(connection: ssl.SSLSocket) -> int:
    """How many bytes are there until the server has ended it."""
    got = 0
    with closing(connection), suppress(OSError):
        while part := connection.recv(1 << 20):
            got += len(part)
    return got
