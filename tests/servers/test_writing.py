"""Uploads are written in turn, many in one transaction: what goes wrong with some of them holds up no others."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from typing import Any

import pytest

from fss_ecdf.campaign.errors import StorageBusy, StorageFull
from servers.storage import ingest, uploads
from servers.storage.admission import NewUploads
from servers.storage.storage import Storage, Writer
from tests.servers.conftest import new_campaign
from tests.servers.rows import row


def test_a_write_that_fails_leaves_nothing_and_the_next_one_works(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign, real = new_campaign(), ingest._add
    storage.campaigns.add(campaign, "0" * 64, [])
    some = [NewUploads(campaign.id, [row(bytes([i]) * 16, b"key")]) for i in range(2)]

    def fails(error: BaseException) -> Callable[..., object]:
        def add(cursor: sqlite3.Cursor, request: NewUploads, *, look: bool) -> object:
            if request is some[1]:
                raise error
            return real(cursor, request, look=look)

        return add

    for error, expected in (
        (sqlite3.OperationalError("no"), StorageFull),
        (RuntimeError("a fault"), RuntimeError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ):
        monkeypatch.setattr(ingest, "_add", fails(error))
        with pytest.raises(expected):
            storage.uploads.add(some)
        assert storage.uploads.counts() == {}
        storage.campaigns.add(new_campaign(), "0" * 64, [])  # by another connection: no lock is left
    monkeypatch.setattr(ingest, "_add", real)
    assert storage.uploads.add(some) == [[], []]
    assert storage.uploads.counts() == {campaign.id: 2}


def test_what_comes_while_a_transaction_runs_goes_into_the_next_one_together(storage: Storage) -> None:
    """And closing waits for all of it."""
    campaign, batches, go = new_campaign(), list[int](), threading.Event()
    storage.campaigns.add(campaign, "0" * 64, [])

    class Slow(uploads.Uploads):
        def add(self, requests: Sequence[NewUploads]) -> list[Any]:
            batches.append(len(requests))
            assert go.wait(30)
            if len(requests) == 2:
                raise StorageBusy("busy", retry_after=5)
            return super().add(requests)

    async def play(slow: Slow) -> None:
        writer = Writer(slow)

        def add(number: int) -> "asyncio.Task[Any]":
            return asyncio.create_task(writer.add(NewUploads(campaign.id, [row(bytes([number]) * 16, b"key")])))

        first = add(0)
        while not batches:
            await asyncio.sleep(0.01)
        others = [add(1), add(2)]
        await asyncio.sleep(0)
        abandoned = others.pop()
        abandoned.cancel()
        await asyncio.sleep(0)
        closing_writer = asyncio.create_task(writer.close())
        go.set()
        assert await first == []
        with pytest.raises(StorageBusy):
            await others[0]
        await closing_writer
        assert batches == [1, 2]
        with pytest.raises(RuntimeError):
            await writer.add(NewUploads(campaign.id, [row(b"x" * 16, b"key")]))

    with closing(Slow(storage.engine)) as slow:
        asyncio.run(play(slow))
    assert storage.uploads.counts() == {campaign.id: 1}


@pytest.mark.parametrize(
    ("wrong", "told"), [(SystemExit(), RuntimeError), (KeyError("a fault"), KeyError), ([], AssertionError)]
)
def test_whatever_goes_wrong_with_one_upload_the_next_one_is_answered(
    storage: Storage, wrong: object, told: type[Exception]
) -> None:
    campaign = new_campaign()
    storage.campaigns.add(campaign, "0" * 64, [])
    some = [NewUploads(campaign.id, [row(bytes([i]) * 16, b"key")]) for i in range(2)]

    class Broken(uploads.Uploads):
        def add(self, requests: Sequence[NewUploads]) -> list[Any]:
            if some[0] not in requests:
                return super().add(requests)
            if isinstance(wrong, BaseException):
                raise wrong
            return []

    async def play(broken: Broken) -> None:
        writer = Writer(broken)
        async with asyncio.timeout(30):
            with pytest.raises(told):
                await writer.add(some[0])
            assert await writer.add(some[1]) == []
            await writer.close()

    with closing(Broken(storage.engine)) as broken:
        asyncio.run(play(broken))


def test_two_threads_that_add_at_once_take_turns(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """They share one connection, and a transaction on it is of one of them."""
    campaign, real, inside, go = new_campaign(), ingest._add, threading.Event(), threading.Event()
    storage.campaigns.add(campaign, "0" * 64, [])
    some = [NewUploads(campaign.id, [row(bytes([i]) * 16, b"key")]) for i in range(2)]

    def add(cursor: sqlite3.Cursor, request: NewUploads, *, look: bool) -> object:
        if request is some[0]:
            inside.set()
            assert go.wait(30)
        return real(cursor, request, look=look)

    monkeypatch.setattr(ingest, "_add", add)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(storage.uploads.add, some[:1])
        assert inside.wait(30)
        second = pool.submit(storage.uploads.add, some[1:])
        assert not wait([second], 0.3).done
        go.set()
        assert [first.result(), second.result()] == [[[]], [[]]]
    assert storage.uploads.counts() == {campaign.id: 2}


def test_short_requests_wait_for_one_transaction_of_long_ones(storage: Storage) -> None:
    """However many long ones wait; and these get their turn, however many short ones come."""
    campaign, batches, go = new_campaign(), list[list[int]](), threading.Event()
    storage.campaigns.add(campaign, "0" * 64, [])

    class Noting(uploads.Uploads):
        def add(self, requests: Sequence[NewUploads]) -> list[Any]:
            batches.append([len(request.rows) for request in requests])
            assert go.wait(30)
            return super().add(requests)

    async def play(noting: Noting) -> None:
        writer = Writer(noting)

        def add(number: int, rows: int) -> "asyncio.Task[Any]":
            some = [row(bytes([number]) + i.to_bytes(15, "big"), b"key") for i in range(rows)]
            return asyncio.create_task(writer.add(NewUploads(campaign.id, some)))

        first = add(0, 6000)
        while not batches:
            await asyncio.sleep(0.01)
        others = [add(1, 6000), add(2, 6000), add(3, 1), add(4, 3000), add(5, 100)]
        await asyncio.sleep(0)
        go.set()
        assert await asyncio.gather(first, *others) == [[]] * 6
        await writer.close()

    noting = Noting(storage.engine)
    asyncio.run(play(noting))
    noting.close()
    assert batches == [[6000], [1, 100], [6000], [6000, 3000]]


def test_requests_of_one_transaction_are_told_apart_where_something_is_stored_already(storage: Storage) -> None:
    """New ones, retries, one of both, other bytes under an id, twice the same, one too many: each its answer."""
    campaign = new_campaign(min_uploads=1, max_uploads=6)
    storage.campaigns.add(campaign, "0" * 64, [])
    a, b, c, d, e, f = ([bytes([n]) * 16] for n in range(6))

    def request(*ids: bytes, key: bytes = b"key") -> NewUploads:
        return NewUploads(campaign.id, [row(i, key) for i in ids])

    assert storage.uploads.add([request(*b)]) == [[]]
    others = request(*e), request(*a, *b), request(*b), request(*c, *b, key=b"other"), request(*d), request(*d)
    *stored, last = storage.uploads.add([*others, request(*f, *[bytes([9]) * 16])])
    assert [[(i, problem.code) for i, problem in one] for one in stored if isinstance(one, list)] == [
        [],
        [],
        [],
        [(b[0], "upload-conflict")],
        [],
        [],
    ]
    assert isinstance(last, list)
    assert [problem.code for _, problem in last] == ["campaign-full"] * 2
    assert storage.uploads.counts() == {campaign.id: 5}
    assert storage.campaigns.get(campaign.id).stored == 5
