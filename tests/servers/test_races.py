"""Two processes at one database: six races that must have no loser, each in hundreds of forced orders.

Each was lost by a storage that took PostgreSQL for a larger SQLite: an upload acknowledged after the freeze, a
withdrawn upload that stays, a budget spent twice, more uploads than a campaign takes, a full disk where there is none.
"""

import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from fss_ecdf.campaign.binary_messages import Row
from fss_ecdf.campaign.errors import (
    BudgetExceeded,
    CampaignFull,
    CampaignSealed,
    InvitationUsed,
    Problem,
    UploadConflict,
)
from servers.storage.admission import NewUploads
from servers.storage.storage import Storage
from tests.harness.postgres import Postgres
from tests.servers.conftest import new_campaign
from tests.servers.interleaving import NO_LOCKS, Act, Two, schedules
from tests.servers.rows import row

QUICK, WHOLE = 6, 200
NOW = datetime(2026, 1, 1, tzinfo=UTC)

Rows = list[Row]


def add(storage: Storage, campaign: bytes, rows: Rows, sender: str | None = None) -> Any:
    outcome = storage.uploads.add([NewUploads(campaign, rows, sender)])[0]
    return outcome if isinstance(outcome, Problem) else [problem for _, problem in outcome]


def freeze_and_list(storage: Storage, campaign: bytes) -> set[bytes]:
    storage.waves.freeze(campaign, closed=True)
    return listed(storage, campaign)


def withdraw(storage: Storage, campaign: bytes, ids: list[bytes]) -> Any:
    return storage.uploads.withdraw(campaign, ids, None)


def spend(storage: Storage, campaign: bytes, purpose: str) -> None:
    storage.ledger.spend(campaign, purpose, 0.8, {0: 1.0}, NOW)


def spend_of(storage: Storage, campaign: bytes, purpose: str, limits: dict[int, float]) -> None:
    storage.ledger.spend(campaign, purpose, 0.8, limits, NOW)


def listed(storage: Storage, campaign: bytes) -> set[bytes]:
    return {upload_id for part in storage.uploads.rows(campaign, 1000) for upload_id, _, _ in part}


class Arena:
    """A database with two processes at it, and a third look at what they left."""

    def __init__(self, url: str) -> None:
        self.storage = Storage(url)
        self.storage.close()  # not to be shared with forks
        self.two = Two(url)

    def campaign(self, **changes: Any) -> bytes:
        campaign = new_campaign(min_uploads=1, **changes)
        tokens = ["1" * 64] if campaign.admission == "invited" else []
        self.storage.campaigns.add(campaign, None if tokens else "0" * 64, tokens)
        return campaign.id

    def stored(self, campaign: bytes) -> set[bytes]:
        """What is there, which is also what is counted."""
        found = listed(self.storage, campaign)
        assert len(found) == self.storage.campaigns.get(campaign).stored
        return found


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def arena(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('races') / 'db'}"
    else:
        url = request.getfixturevalue("postgres").database()
    made = Arena(url)
    with made.two:
        yield made
    made.storage.close()


def rows(count: int) -> Rows:
    return [row(secrets.token_bytes(16), secrets.token_bytes(40)) for _ in range(count)]


Race = Callable[[Arena, tuple[int | None, int | None]], None]


def upload_and_freeze(arena: Arena, pauses: tuple[int | None, int | None]) -> None:
    campaign, some = arena.campaign(), rows(3)
    if secrets.randbits(1):  # one of them is here already: the way of retries
        assert add(arena.storage, campaign, some[:1]) == []
    acts = Act(add, (campaign, some)), Act(freeze_and_list, (campaign,))
    if secrets.randbits(1):
        frozen, told = arena.two.play(acts[1], acts[0], pauses)
    else:
        told, frozen = arena.two.play(*acts, pauses)
    assert told == [] or isinstance(told, CampaignSealed), told
    assert arena.stored(campaign) == frozen
    assert told != [] or {i for i, _, _ in some} <= frozen


def upload_and_withdrawal(arena: Arena, pauses: tuple[int | None, int | None]) -> None:
    campaign, some = arena.campaign(), rows(2)
    if secrets.randbits(1):
        assert add(arena.storage, campaign, some[:1]) == []
    gone = some[0][0]
    told, (_, forgotten) = arena.two.play(Act(add, (campaign, some)), Act(withdraw, (campaign, [gone])), pauses)
    assert (isinstance(told, list), forgotten) == (True, [])
    assert arena.stored(campaign) == {some[1][0]}
    assert [type(problem).code for problem in add(arena.storage, campaign, some[:1])] == ["upload-withdrawn"]


def two_expenses(arena: Arena, pauses: tuple[int | None, int | None]) -> None:
    campaign = arena.campaign()
    both = arena.two.play(Act(spend, (campaign, "a")), Act(spend, (campaign, "b")), pauses)
    assert sorted(isinstance(outcome, BudgetExceeded) for outcome in both) == [False, True], both
    assert sum(arena.storage.ledger.spent(campaign).values()) == 0.8


def two_queries(arena: Arena, pauses: tuple[int | None, int | None]) -> None:
    """About a wave and about a pool with it: one is paid, by all waves in it or by none. A release is not in their way.

    Or the same query in two processes, which is paid once.
    """
    campaign, again = arena.campaign(), bool(secrets.randbits(1))
    spend(arena.storage, campaign, "wave 1")
    acts = (
        Act(spend_of, (campaign, "sums x of wave 1", {1: 1.0})),
        Act(spend_of, (campaign, "sums x of wave 1" if again else "sums x of pooled 2", {2: 1.0, 1: 1.0})),
    )
    both = arena.two.play(*acts, pauses)
    refused = [isinstance(outcome, BudgetExceeded) for outcome in both]
    assert sorted(refused) == [False, again is False], both
    spent = arena.storage.ledger.spent(campaign, of_reserve=True)
    assert spent == ({1: 0.8} if refused[1] else {1: 0.8, 2: 0.8})
    assert arena.storage.ledger.spent(campaign)[0] == 0.8


def too_many(arena: Arena, pauses: tuple[int | None, int | None]) -> None:
    """Of a campaign, or of an invitation."""
    campaign, sender = arena.campaign(max_uploads=10), None
    problem: type[Problem] = CampaignFull
    if secrets.randbits(1):
        campaign, sender = arena.campaign(admission="invited", max_values_per_person=10), "1" * 64
        problem = InvitationUsed
    some = rows(6), rows(6)
    acts = [Act(add, (campaign, mine, sender)) for mine in some]
    both = arena.two.play(acts[0], acts[1], pauses)
    refused = [outcome != [] for outcome in both]
    assert sorted(refused) == [False, True], both
    assert {type(one) for outcome in both for one in outcome} == {problem}
    assert arena.stored(campaign) == {i for i, _, _ in some[refused.index(False)]}


def the_same_id(arena: Arena, pauses: tuple[int | None, int | None]) -> None:
    """Byte-identical, which is a retry, or not."""
    campaign, some = arena.campaign(), rows(3)
    same = bool(secrets.randbits(1))
    other = some if same else [row(some[0][0], b"other bytes")]
    both = arena.two.play(Act(add, (campaign, some)), Act(add, (campaign, other)), pauses)
    if same:
        assert both == ([], [])
    else:
        assert sorted(len(outcome) for outcome in both) == [0, 1], both
        assert {type(one) for outcome in both for one in outcome} == {UploadConflict}
    assert arena.stored(campaign) == {i for i, _, _ in some}


RACES: list[Race] = [upload_and_freeze, upload_and_withdrawal, two_expenses, two_queries, too_many, the_same_id]


def play(arena: Arena, race: Race, orders: int) -> None:
    for pauses in islice(schedules(orders), orders):
        race(arena, pauses)


@pytest.mark.parametrize("race", RACES)
def test_a_race_has_no_loser(arena: Arena, race: Race) -> None:
    play(arena, race, QUICK)


@pytest.mark.faults
@pytest.mark.parametrize("race", RACES)
def test_no_order_has_a_loser(arena: Arena, race: Race) -> None:
    play(arena, race, WHOLE)


@pytest.mark.faults
def test_the_races_can_be_lost(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its locks, PostgreSQL does what the races are named after."""
    monkeypatch.setenv(NO_LOCKS, "1")
    unlocked = Arena(postgres.database())
    with unlocked.two:
        for race in (upload_and_freeze, two_expenses, two_queries):
            with pytest.raises(AssertionError):
                play(unlocked, race, 40)
    unlocked.storage.close()
