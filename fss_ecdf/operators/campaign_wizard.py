"""fss-server campaign new: a campaign's TOML from a person's answers, each checked as it is given."""

from collections.abc import Callable
from typing import Any

import tomli_w

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidCampaign

Ask = Callable[[str, str], str]
HEAD = "# Every field is explained in docs/campaigns.md. The id is made when the campaign is created.\n"
_NOBODY = "write the file by hand, docs/campaigns.md has examples"


class _Wrong(Exception):
    """An answer that cannot be used, and why."""


def ask_campaign(ask: Ask) -> str:
    """Asks until all of it is a campaign."""
    fields: dict[str, Any] = {
        "title": _until(ask, "A title: ", _text),
        "question": _until(ask, "What are the parties asked, in one sentence? ", _text),
    }
    variable: dict[str, Any] = {"name": _until(ask, "What is measured, on axes and in tables? ", _text)}
    categories = ask("If it is no number: its categories, separated by commas: (may be empty) ", _NOBODY)
    if categories:
        variable["categories"] = [name.strip() for name in categories.split(",")]
    elif unit := ask("In which unit? (may be empty) ", _NOBODY):
        variable["unit"] = unit
    if _until(ask, "Are missing values counted, too? yes or no: [no] ", _yes):
        variable["missing"] = True
    fields["epsilon"] = _until(ask, "Epsilon, the privacy a party gives up; 1 is usual: [1] ", _epsilon)
    strata = ask("Groups that are told apart, separated by commas, like no event, event: (may be empty) ", _NOBODY)
    if strata:
        fields["strata"] = [name.strip() for name in strata.split(",")]
    fields["min_uploads"] = _until(ask, "How many values must there be before anything is published? [100] ", _whole)
    while True:
        try:
            fields["variables"] = [variable if categories else {**variable, "grid": _grid(ask)}]
            Campaign.from_dict({**fields, "id": bytes(32)})
        except InvalidCampaign as problem:
            if categories:
                raise
            ask(f"this is no campaign: {problem.detail}. Press enter to give the grid again ", _NOBODY)
            continue
        return HEAD + tomli_w.dumps(fields)


def _grid(ask: Ask) -> dict[str, Any]:
    kind = _until(ask, "Are values any numbers (float), whole numbers (integer) or dates (date)? [float] ", _kind)
    example = "2026-01-01" if kind == "date" else "0"
    ends = [
        _until(ask, f"The {which} value that matters, like {example}: ", _end(kind)) for which in ("least", "largest")
    ]
    grid = {"kind": "linear", "values": kind, "from": ends[0], "to": ends[1]}
    if kind != "float":
        return {**grid, "step": 1}
    return {**grid, "step": _until(ask, "In steps of, like 0.1: ", _number)}


def _until(ask: Ask, question: str, read: Callable[[str], Any]) -> Any:
    while True:
        try:
            return read(ask(question, _NOBODY))
        except _Wrong as wrong:
            question = f"{wrong}; again: "


def _text(answer: str) -> str:
    if not answer:
        raise _Wrong("something has to stand here")
    return answer


def _number(answer: str) -> float:
    try:
        return float(answer.replace(",", "."))
    except ValueError:
        raise _Wrong(f"{answer!r} is not a number") from None


def _epsilon(answer: str) -> float:
    found = _number(answer or "1")
    if not 0 < found <= 20:
        raise _Wrong("epsilon lies above 0, and rarely above 5")
    return found


def _whole(answer: str) -> int:
    if not (answer or "100").isdecimal():
        raise _Wrong(f"{answer!r} is not a whole number")
    return int(answer or "100")


def _yes(answer: str) -> bool:
    if answer.lower() not in ("", "n", "no", "y", "yes"):
        raise _Wrong("yes or no")
    return answer.lower() in ("y", "yes")


def _kind(answer: str) -> str:
    found = answer or "float"
    if found not in ("float", "integer", "date"):
        raise _Wrong("float, integer or date")
    return found


def _end(kind: str) -> Callable[[str], Any]:
    return {"date": _text, "float": _number, "integer": lambda answer: int(_number(answer))}[kind]
