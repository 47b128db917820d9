"""The schemes by name: how keys are made and summed, and what they can answer. A caller never asks which one it has.

>>> sorted(SCHEMES)
['dcf', 'dpf']
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from numpy.typing import ArrayLike

from fss import dcf, dpf, field
from fss.field import Words
from fss.keys import MAX_BITS, KeyBatch, KeyType, Scheme
from fss.proof import Proofs

Pair = tuple[KeyBatch, KeyBatch]


class Generate(Protocol):
    def __call__(self, alphas: ArrayLike, *, bits: int, binder: bytes, rand: bytes) -> Pair: ...


class GenerateProved(Protocol):
    def __call__(
        self, alphas: ArrayLike, *, bits: int, binder: bytes, rand: bytes
    ) -> tuple[Pair, tuple[Proofs, Proofs]]: ...


class SumAtPoints(Protocol):
    def __call__(self, keys: KeyBatch, points: ArrayLike, *, threads: int = 1) -> Words: ...


class SumOverDomain(Protocol):
    def __call__(self, keys: KeyBatch, *, threads: int = 1) -> Words: ...


@dataclass(frozen=True)
class SchemeFunctions:
    """What callers need of one scheme."""

    scheme: Scheme
    gen: Generate
    gen_proved: GenerateProved
    sum_at_points: SumAtPoints
    sum_over_domain: SumOverDomain
    max_bits: int  # of a domain whose curve can be had
    is_cumulative: bool  # a key counts at every point from its own on, so points can be answered from keys

    def curve(self, sums: Words) -> Words:
        """Shares of how many lie at or below each point, from `sum_over_domain`."""
        return sums if self.is_cumulative else field.prefix_sum(sums)


SCHEMES: Mapping[str, SchemeFunctions] = {
    "dcf": SchemeFunctions(
        Scheme.DCF, dcf.gen, dcf.gen_proved, dcf.sum_at_points, dcf.sum_over_domain, MAX_BITS, is_cumulative=True
    ),
    "dpf": SchemeFunctions(
        Scheme.DPF, dpf.gen, dpf.gen_proved, dpf.sum_at_points, dpf.sum_over_domain, 26, is_cumulative=False
    ),
}


def scheme_of(type: KeyType) -> SchemeFunctions:
    """The scheme of these keys."""
    return SCHEMES[type.scheme.name.lower()]
