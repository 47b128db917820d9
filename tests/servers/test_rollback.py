"""A database that is older than what was done with it is noticed by both servers, and nothing goes on until decided."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from fss_ecdf.campaign.errors import BudgetExceeded, InvalidPeerResponse, OnHold
from fss_ecdf.net.server_identity import Identity
from servers.peer import PeerClient
from servers.release.budget import Account, Budget
from servers.rollback import FILE, RollbackGuard, Told
from servers.storage.history import MARK_BYTES, Mark
from servers.storage.schema import HISTORY, LEDGER, STANDING
from servers.storage.storage import Storage, Writer
from tests.harness.postgres import Postgres
from tests.harness.server_pair import IDENTITIES
from tests.servers.conftest import fixed, new_campaign

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Side:
    """One server's database and what it thinks of histories."""

    storage: Storage
    guard: RollbackGuard

    def act(self, times: int = 1) -> None:
        """Something that must not be forgotten."""
        for _ in range(times):
            campaign = new_campaign()
            self.storage.campaigns.add(campaign, "0" * 64, [])

    def roll_back(self, to: int) -> None:
        """The database of an earlier moment, as far as histories go."""
        with self.storage.engine.begin() as db:
            db.execute(HISTORY.delete().where(HISTORY.c.number > to))

    @property
    def held(self) -> bool:
        self.guard.look()
        return "on_hold" in self.guard.shown()

    @property
    def doubts(self) -> bool:
        self.guard.look()
        return "peer_rolled_back" in self.guard.shown()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def storages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Storage]]:
    """One for each side."""
    urls = [f"sqlite:///{tmp_path_factory.mktemp('side') / 'db'}" for _ in range(2)]
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        urls = [server.database() for _ in range(2)]
    with closing(Storage(urls[0])) as zero, closing(Storage(urls[1])) as one:
        yield [zero, one]


@pytest.fixture
def sides(storages: list[Storage], tmp_path: Path) -> tuple[Side, Side]:
    """With histories that begin anew."""
    identities = [Identity(secret, role) for role, secret in enumerate(IDENTITIES)]
    guards = []
    for role, storage in enumerate(storages):
        with storage.engine.begin() as db:
            db.execute(HISTORY.delete())
            db.execute(STANDING.delete())
            if db.dialect.name == "postgresql":
                db.exec_driver_sql("SELECT setval(pg_get_serial_sequence('history', 'number'), 1, false)")
        (tmp_path / str(role)).mkdir()
        guards.append(_guard(storage, identities, role, tmp_path / str(role)))
    return Side(storages[0], guards[0]), Side(storages[1], guards[1])


def _guard(storage: Storage, identities: list[Identity], role: int, folder: Path) -> RollbackGuard:
    key = identities[1 - role].signing_key.hex()
    return RollbackGuard(storage.history, identities[role], key, folder, lambda: NOW)


def ask(a: Side, b: Side, *, answered: bool = True) -> None:
    """One message from one side to the other, and its answer."""
    told = a.guard.tell()
    heard = b.guard.hear(str(told))
    answer = b.guard.tell(heard)
    if answered:
        a.guard.hear(str(answer), told)


def is_well(*sides: Side) -> bool:
    return not any(side.held or side.doubts for side in sides)


def test_nothing_is_noticed_where_nothing_happened(sides: tuple[Side, Side]) -> None:
    a, b = sides
    for _ in range(3):
        a.act(2)
        ask(a, b)
        b.act()
        ask(b, a)
    assert is_well(a, b)


@pytest.mark.parametrize("since", [0, 1, 20], ids=["nothing since", "as much since", "more since"])
@pytest.mark.parametrize("first", ["asks", "is asked"])
def test_both_sides_notice_whatever_was_done_since(sides: tuple[Side, Side], since: int, first: str) -> None:
    a, b = sides
    a.act(4)
    ask(a, b)
    a.act()
    ask(a, b)  # b has seen 5 now
    (a.guard._data / FILE).unlink()  # the whole machine was rolled back
    a.roll_back(4)
    a.act(since)
    ask(*((a, b) if first == "asks" else (b, a)))
    assert a.held
    ask(b, a)
    assert b.doubts
    with pytest.raises(OnHold, match="fss-server recovery show"):
        asyncio.run(a.guard.require())


def test_an_empty_database_is_noticed(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.act()
    ask(a, b)
    (a.guard._data / FILE).unlink()
    a.roll_back(0)
    ask(a, b)
    assert a.held


def test_the_file_beside_the_database_notices_alone(sides: tuple[Side, Side]) -> None:
    """A failover to an older replica, with a peer that says nothing."""
    a, b = sides
    a.act(3)
    ask(a, b)
    assert not a.held
    a.roll_back(2)
    assert a.held


def test_a_lost_answer_takes_no_evidence_with_it(sides: tuple[Side, Side]) -> None:
    """What was done since is told, and the answer by which the server would have noticed is lost."""
    a, b = sides
    a.act(3)
    ask(a, b)
    (a.guard._data / FILE).unlink()
    a.roll_back(2)
    a.act(5)
    for _ in range(3):
        ask(a, b, answered=False)
    ask(a, b)
    assert a.held


def test_messages_that_overtake_each_other_are_no_rollback(sides: tuple[Side, Side]) -> None:
    a, b = sides
    ask(a, b)
    a.act()
    early = a.guard.tell()
    a.act()
    ask(a, b)
    late = b.guard.tell(b.guard.hear(str(early)))
    a.guard.hear(str(late), early)
    ask(b, a)
    assert is_well(a, b)


def test_an_operator_decides_and_both_go_on(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.act(3)
    ask(a, b)
    a.roll_back(1)
    ask(b, a)
    assert a.held
    assert b.doubts
    assert a.guard.accept(b.guard.tell().seen).generation == 1
    ask(a, b)
    ask(b, a)
    assert is_well(a, b)
    # The next rollback is noticed again, also one to before the decision.
    with a.storage.engine.begin() as db:
        db.execute(STANDING.delete().where(STANDING.c.name == "own"))
        db.execute(HISTORY.delete().where(HISTORY.c.number > 1))
    (a.guard._data / FILE).unlink()
    ask(a, b)
    assert a.held


def test_a_database_that_comes_back_is_taken_without_a_decision_of_the_other_side(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.act(3)
    ask(a, b)
    with a.storage.engine.connect() as db:
        rows = [dict(row) for row in db.execute(sa.select(HISTORY)).mappings()]
    a.roll_back(1)
    ask(b, a)
    assert b.doubts
    with a.storage.engine.begin() as db:  # the right replica
        db.execute(HISTORY.delete())
        db.execute(STANDING.delete().where(STANDING.c.name == "own"))
        db.execute(HISTORY.insert(), rows)
    ask(b, a)
    assert is_well(a, b)


def test_a_lie_puts_nobody_on_hold(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.act(3)
    ask(a, b)
    good = b.guard.tell()
    (seen,) = good.seen
    for invented in (
        Mark(0, 99, bytes(MARK_BYTES)),
        Mark(7, seen.number, seen.value),
        Mark(0, seen.number + 1, seen.value),
    ):
        a.guard.hear(str(Told(good.newest, (seen, invented))))
    assert not a.held
    for nonsense in ("", "x", "- - -", "1.2.3 - -", f"{good.newest} -", "0.-1." + "A" * 43 + " - -"):
        with pytest.raises(InvalidPeerResponse):
            a.guard.hear(nonsense)


def test_nothing_is_sealed_or_spent_on_hold_but_deleting_is_possible(sides: tuple[Side, Side]) -> None:
    a, _ = sides
    campaign, _, _ = fixed(a.storage)
    other = new_campaign()
    a.storage.campaigns.add(other, "0" * 64, [])
    assert a.storage.history.hold("a reason", NOW)
    assert not a.storage.history.hold("another", NOW)
    for refused in (
        lambda: a.storage.ledger.spend(campaign.id, "curve", 1.0, {0: 1.0}, NOW),
        lambda: a.storage.waves.agree(other.id),
        lambda: a.storage.waves.freeze(other.id, closed=True),
        lambda: a.storage.campaigns.add(new_campaign(), "0" * 64, []),
    ):
        with pytest.raises(OnHold, match="a reason"):
            refused()
    assert a.storage.ledger.spent(campaign.id) == {}
    assert a.storage.waves.get(other.id).state == "open"
    a.storage.campaigns.delete(other.id)


def test_a_database_that_took_another_s_place_has_no_expense_in_memory(postgres: Postgres) -> None:
    """The curve was paid in the old one. In the new one it is paid again, and the reserve has nothing to do with it."""

    async def play(storage: Storage) -> None:
        campaign, writer = new_campaign(), Writer(storage.uploads)
        storage.campaigns.add(campaign, "0" * 64, [])
        peer = PeerClient.__new__(PeerClient)
        peer._guard = None
        budget, account = Budget(storage, writer, peer, lambda: NOW), Account(campaign.id, "curve", 1.0, {0: 1.0}, 0.5)
        await budget.spend_curve(account)
        with storage.engine.begin() as db:
            db.execute(LEDGER.delete())
        storage.engine.dispose()  # and connections to what is there now
        assert budget._paid
        await budget.spend_reserve(account, "sums of something", 0.5)
        with pytest.raises(BudgetExceeded):
            await budget.spend_reserve(account, "sums of something else", 0.5)
        assert not budget._paid
        await budget.spend_curve(account)
        assert storage.ledger.spent(campaign.id) == {0: 1.5}
        await writer.close()

    with closing(Storage(postgres.database())) as storage:
        asyncio.run(play(storage))
