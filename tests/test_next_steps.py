"""The next step is named in every state that two servers can be in."""

from itertools import product
from typing import Any

import pytest

from fss_ecdf.campaign.status import Status, StatusProblem
from fss_ecdf.operators.next_steps import next_step, typed


def status(state: str, **more: Any) -> Status:
    newest = {"number": 0, "state": state, "uploads": 50, "rejected": 0, "operator_agreed": False}
    fields = {"id": "ID", "title": "Days", "state": state, "uploads": 50, "server": 0, "digest": bytes(32)}
    fields |= {"min_uploads": 10, "operator_agreed": False, "freeze_number": 0, "seal": "by-agreement"}
    fields |= {"closes": "2026-01-01T00:00:00Z", "closed": False, "check_keys": True, "rejected": 0, "wave": 0}
    fields |= {"hpke_key_lost": False, "waves": [newest], "epsilon_for_party": 1.0, "closes_itself": False}
    return Status.model_validate({**fields, **more})


def _problem(code: str) -> StatusProblem:
    return StatusProblem(problem=code, detail="")


def _step(here: Status, there: Status | StatusProblem) -> str:
    return next_step(here.model_copy(update={"peer": there}), typed("ID"))


@pytest.mark.parametrize(("here", "there"), list(product(["open", "frozen", "checking", "sealed"], repeat=2)))
def test_every_pair_of_states_has_one(here: str, there: str) -> None:
    phase = {"phase": "ready"}
    step = _step(status(here, **phase), status(there, **phase))
    fixed = {"checking", "sealed"}
    if here in fixed and there in fixed:
        assert ("analysts can ask" in step) == (here == there == "sealed")
    elif {here, there} & fixed:
        assert f"{here} here and {there} at the other server; to complete it: fss-server campaign seal ID" in step
    elif "frozen" in (here, there):
        assert "go on with it: fss-server campaign seal ID, or undo it: fss-server campaign unfreeze ID" in step
    else:
        assert "fss-server campaign seal ID, by both operators" in step


@pytest.mark.parametrize(
    ("here", "there", "said"),
    [
        (status("open", operator_agreed=True), status("open"), "the other operator must do the same"),
        (
            status("open", operator_agreed=True),
            status("open"),
            "withdraw your agreement: fss-server campaign cancel-seal",
        ),
        (status("open"), status("open", operator_agreed=True), "the other operator wants it sealed; if you agree"),
        (status("open", uploads=3), status("open"), "wait for uploads: at least 10"),
        (status("open"), status("open", uploads=3), "wait for uploads: at least 10"),
        (status("open", uploads=3, closed=True), status("open"), "fewer than the 10 that were promised"),
        (
            status("open", seal="at-closing", closes_itself=True),
            status("open"),
            "seal by themselves at 2026-01-01T00:00:00Z",
        ),
        (status("open"), _problem("unknown-campaign"), "its operator must create or accept it"),
        (status("open"), _problem("campaign-deleted"), "delete it here, too"),
        (status("open"), _problem("digest-mismatch"), "different campaigns under this id"),
        (status("open"), _problem("peer-unavailable"), "cannot be asked now"),
        (status("sealed", phase="evaluating"), status("sealed", phase="ready"), "the curve is being evaluated"),
        (status("sealed", phase="ready"), status("sealed", phase="failed"), "the other server could not evaluate"),
        (
            status("sealed", phase="ready", excluded_stored=3),
            status("sealed", phase="ready"),
            "fss-server campaign discard-excluded ID",
        ),
    ],
)
def test_what_is_said(here: Status, there: Status | StatusProblem, said: str) -> None:
    assert said in _step(here, there)
