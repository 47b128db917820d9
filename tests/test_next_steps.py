"""The next step is named in every state that two servers can be in."""

from itertools import product
from typing import Any

import pytest

from fss_ecdf.operators.next_steps import next_step, typed


def _status(state: str, **more: Any) -> dict[str, Any]:
    about = {"state": state, "uploads": 50, "min_uploads": 10, "agreed": False, "closed": False, "seal": "by-agreement"}
    return {**about, "closes": "2026-01-01T00:00:00Z", **more}


def _step(here: dict[str, Any], there: dict[str, Any]) -> str:
    return next_step({**here, "peer": there}, typed("ID"))


@pytest.mark.parametrize(("here", "there"), list(product(["open", "frozen", "checking", "sealed"], repeat=2)))
def test_every_pair_of_states_has_one(here: str, there: str) -> None:
    phase = {"phase": "ready"}
    step = _step(_status(here, **phase), _status(there, **phase))
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
        (_status("open", agreed=True), _status("open"), "the other operator must do the same"),
        (_status("open", agreed=True), _status("open"), "take your word back: fss-server campaign cancel-seal ID"),
        (_status("open"), _status("open", agreed=True), "the other operator wants it sealed; if you agree"),
        (_status("open", uploads=3), _status("open"), "wait for uploads: at least 10"),
        (_status("open"), _status("open", uploads=3), "wait for uploads: at least 10"),
        (_status("open", uploads=3, closed=True), _status("open"), "fewer than the 10 that were promised"),
        (_status("open", seal="at-closing"), _status("open"), "seal by themselves at 2026-01-01T00:00:00Z"),
        (_status("open"), {"problem": "unknown-campaign"}, "its operator must create or accept it"),
        (_status("open"), {"problem": "campaign-deleted"}, "delete it here, too"),
        (_status("open"), {"problem": "digest-mismatch"}, "different campaigns under this id"),
        (_status("open"), {"problem": "peer-unavailable"}, "cannot be asked now"),
        (_status("sealed", phase="evaluating"), _status("sealed", phase="ready"), "the curve is being evaluated"),
        (_status("sealed", phase="ready"), _status("sealed", phase="failed"), "the other server could not evaluate"),
        (
            _status("sealed", phase="ready", kept=3),
            _status("sealed", phase="ready"),
            "fss-server campaign discard-excluded ID",
        ),
    ],
)
def test_what_is_said(here: dict[str, Any], there: dict[str, Any], said: str) -> None:
    assert said in _step(here, there)
