"""Campaigns that several tests use."""

from typing import Any

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.score_groups import score_group_sums
from fss_ecdf.campaign.variable import Variable

LINEAR = {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01}


def fields(**changes: Any) -> dict[str, Any]:
    """Of a campaign with one variable, whose fields are given like the campaign's own; `...` leaves one out."""
    own = {field.alias or name for name, field in Variable.model_fields.items()} & changes.keys()
    one = {"name": "risk"} | ({} if "categories" in changes else {"grid": LINEAR}) | {n: changes.pop(n) for n in own}
    whole = {
        "id": bytes(range(32)),
        "title": "Risk score",
        "question": "What risk does the model give your patients?",
        "variables": [_given(one)],
        "epsilon": 1.0,
        "check_keys": False,
        **changes,
    }
    return _given(whole)


def _given(whole: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in whole.items() if value is not ...}


def campaign(**changes: Any) -> Campaign:
    return Campaign.from_dict(fields(**changes))


def count_above(spec: Campaign, cut: float, epsilon: float) -> dict[str, Any]:
    """A query for one sum: how many values are above a threshold, of all strata together."""
    above = (spec.variable.grid.all_thresholds > cut).astype(int).tolist() + [0] * spec.variable.missing
    return {"weights": [above * len(spec.strata)], "epsilon": epsilon}


def group_sums(spec: Campaign, upper_ends: list[float], epsilon: float) -> dict[str, Any]:
    """A query for the sums of Algorithm 2."""
    asked = score_group_sums(spec, upper_ends)
    return {"weights": asked.weights.tolist(), "units": list(asked.units), "epsilon": epsilon}
