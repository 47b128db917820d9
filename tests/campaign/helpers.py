"""Campaigns that several tests use."""

from typing import Any

from fss_ecdf.campaign.campaign import Campaign

LINEAR = {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01}


def fields(**changes: Any) -> dict[str, Any]:
    whole = {
        "id": bytes(range(32)),
        "title": "Risk score",
        "question": "What risk does the model give your patients?",
        "grid": LINEAR,
        "epsilon": 1.0,
        "check_keys": False,
        **changes,
    }
    return {key: value for key, value in whole.items() if value is not ...}


def campaign(**changes: Any) -> Campaign:
    return Campaign.from_dict(fields(**changes))
