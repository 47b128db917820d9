"""Strata: the categories that a campaign counts apart, and the numbers that stand for their names."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.error_text import listed, short
from fss_ecdf.campaign.errors import InvalidCampaign, InvalidQuery, InvalidValue

MAX_STRATA = 4096
EVENT, CENSORED = "event", "censored"


def check_strata(strata: tuple[str, ...]) -> None:
    """Names of categories: at least one, all different, not too many. What a name may be, its type says."""
    if not strata or len(set(strata)) != len(strata):
        raise InvalidCampaign("strata are one or more different names")
    if len(strata) > MAX_STRATA:
        raise InvalidCampaign(f"at most {MAX_STRATA} strata, got {len(strata)}")


def check_survival(strata: tuple[str, ...]) -> None:
    """Strata of survival come in pairs: "event" and "censored", or "ARM: event" and "ARM: censored" for each arm."""
    arms = [event.removesuffix(EVENT) for event in strata[0::2]]
    single = arms == [""]
    expected = [name for arm in arms for name in (arm + EVENT, arm + CENSORED)]
    if list(strata) != expected or not (single or all(arm.endswith(": ") and len(arm) > 2 for arm in arms)):
        raise InvalidCampaign(
            'strata of kind = "survival" are "event" and "censored", or for each arm "ARM: event" and "ARM: censored", '
            "in this order"
        )


def arms(strata: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Of survival: each arm's strata, those whose event was seen and those who were censored before it."""
    pairs = zip(strata[0::2], strata[1::2], strict=True)
    return {event.removesuffix(EVENT).removesuffix(": ") or "all": (event, rest) for event, rest in pairs}


def known(strata: tuple[str, ...]) -> str:
    """The names that an error says would have been right."""
    return listed([short(repr(name)) for name in strata], ", ")


def number(strata: tuple[str, ...], name: str) -> int:
    if name not in strata:
        raise InvalidQuery(f"stratum {short(repr(name))} is not one of {known(strata)}")
    return strata.index(name)


def numbers(strata: tuple[str, ...], names: Sequence[str] | None, count: int, first_row: int = 1) -> NDArray[np.int64]:
    """The stratum of each of so many values; a bad name is an error that says its row."""
    if names is None:
        if len(strata) > 1:
            raise InvalidValue(f"every value needs its stratum, one of {known(strata)}")
        return np.zeros(count, np.int64)
    if len(names) != count:
        raise InvalidValue(f"{count} values but {len(names)} strata")
    at = {name: i for i, name in enumerate(strata)}
    for row, name in enumerate(names, first_row):
        if name not in at:
            raise InvalidValue(f"row {row}: stratum {short(repr(name))} is not one of {known(strata)}")
    return np.array([at[name] for name in names], np.int64)
