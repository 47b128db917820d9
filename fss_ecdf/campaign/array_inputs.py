"""What people hand over in Python: numbers, lists, numpy arrays, pandas Series; all of it as sequences."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

import numpy as np

Scalar = str | int | float | date | np.generic
# A Series of pandas is one of them, which need not be installed.
Values = Scalar | Sequence[Any] | np.ndarray[Any, Any] | Any
Strata = str | int | Sequence[Any] | np.ndarray[Any, Any] | Any


def many(values: Any) -> Any:
    """A scalar as a list of one, a Series as its array, days of numpy as dates; anything else as it is."""
    scalar = isinstance(values, str | bytes | int | float | date | np.generic)
    if scalar or (np.ndim(values) == 0 and not isinstance(values, Iterable)):
        return [values]
    found = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(found, np.ndarray):
        return found.astype("datetime64[D]").astype(object) if found.dtype.kind == "M" else np.atleast_1d(found)
    return found if isinstance(found, Sequence) else list(found)


def names(strata: Any) -> tuple[str, ...]:
    """Names of strata. A whole number means the stratum that is called by it; true and false mean nothing."""
    return tuple(_name(one) for one in many(strata))


def named(strata: Strata, count: int) -> tuple[str, ...]:
    """One name for each of so many values; a single one is that of all."""
    found = names(strata)
    return found * count if isinstance(strata, str | int | np.generic) else found


def _name(one: Any) -> str:
    if isinstance(one, np.generic):
        one = one.item()
    if isinstance(one, float) and one.is_integer():
        one = int(one)  # a column of whole numbers in which some are missing
    return str(one)
