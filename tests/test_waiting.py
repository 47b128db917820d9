"""An operator who waits for a curve: what passes is waited for, what does not is said."""

from collections.abc import Iterator
from typing import Any

import pytest

from fss_ecdf.campaign.errors import CampaignDeleted, PeerUnavailable, Problem, TooFewUploads, TryAgain
from fss_ecdf.campaign.status import Status, StatusProblem, WaveStatus
from fss_ecdf.operators import servers

READY = {"state": "sealed", "phase": "ready", "progress": 1.0}
BUSY = {"state": "sealed", "phase": "evaluating", "progress": 0.5}
FAILED = {**BUSY, "phase": "failed", "problem": "the disk is full"}
AWAY = {"problem": PeerUnavailable.code, "detail": "server 1 cannot be reached"}


class Clock:
    """Half a second passes with every sleep, and none of it is waited for."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(servers, "time", made)
    return made


def status(server: int, fields: dict[str, Any]) -> Status | StatusProblem:
    if "state" not in fields:
        return StatusProblem.model_validate({"server": server, **fields})
    wave = WaveStatus.model_validate({"number": 0, "uploads": 7, "rejected": 0, "operator_agreed": True, **fields})
    return Status.model_construct(server=server, waves=[wave], too_few=fields.get("too_few"))


def waited(monkeypatch: pytest.MonkeyPatch, second: Iterator[dict[str, Any]]) -> WaveStatus:
    """With a first server that is ready."""

    def statuses(*_: object) -> list[Status | StatusProblem]:
        return [status(0, READY), status(1, next(second))]

    monkeypatch.setattr(servers, "statuses", statuses)
    return servers.wait_until_ready([], "id", lambda _: None)


@pytest.mark.parametrize("trouble", [FAILED, AWAY])
def test_what_passes_is_waited_for(monkeypatch: pytest.MonkeyPatch, clock: Clock, trouble: dict[str, Any]) -> None:
    """Several times, each for less than the patience, together for longer."""
    once = [*[trouble] * int(2 * servers.PATIENCE_S - 2), BUSY]
    assert waited(monkeypatch, iter([*once, *once, READY])).uploads == 7
    assert clock.now - 100 > 1.5 * servers.PATIENCE_S


@pytest.mark.parametrize(
    ("trouble", "kind", "said"),
    [(FAILED, TryAgain, "server 1 could not .* disk is full"), (AWAY, PeerUnavailable, "cannot be reached")],
)
def test_what_does_not_pass_is_said(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, trouble: dict[str, Any], kind: type[Problem], said: str
) -> None:
    with pytest.raises(kind, match=said):
        waited(monkeypatch, iter([BUSY, *[trouble] * 1000]))
    assert servers.PATIENCE_S < clock.now - 100 < servers.PATIENCE_S + 2


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        ({"problem": CampaignDeleted.code, "detail": "gone"}, CampaignDeleted),
        ({**READY, "too_few": True}, TooFewUploads),
    ],
)
def test_what_cannot_pass_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, trouble: dict[str, Any], kind: type[Problem]
) -> None:
    with pytest.raises(kind):
        waited(monkeypatch, iter([BUSY, trouble]))
    assert clock.now == 100.5
