"""What a worker does: sum some keys of a key file over the whole domain. A pure function of what it is given."""

from dataclasses import dataclass

from fss import KeyBatch, KeyType, Scheme, dcf, dpf
from fss.field import Words


@dataclass(frozen=True)
class Slice:
    """Some keys of a key file."""

    path: str
    type: KeyType
    start: int
    stop: int


def slice_sum(task: Slice) -> Words:
    """The share of the sum of these keys, at every position."""
    keys = KeyBatch.open(task.path, task.type.binder, expected=task.type)[task.start : task.stop]
    scheme = dcf if task.type.scheme is Scheme.DCF else dpf
    total: Words = scheme.sum_over_domain(keys)
    return total
