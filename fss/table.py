"""Tables: all counts of one party in one contribution, shared between two servers, with a proof that they are counts.

Where a key shares one value's point function, a table shares the histogram of many: one server gets a seed, the other
one word a position and a proof, and nothing has to be evaluated. With labels l = 1..L and their counts y_l,

    Q(X) = rho product over l of (X - l)^(y_l)          rho uniform but not 0; the degree is at most D
    Q'(X) / Q(X) = sum over l of y_l / (X - l) = S(X)    and S(tau) is linear in y for a public tau

The words y, v, Q and W = v Q are shared additively. Only a Q with roots at labels and nowhere else has such a
derivative, and then y_l is how often l is a root: a whole number, not negative. v, uniform, hides S(tau), and rho hides
Q(tau).

    party      `share`: a seed for one server (`seed_server`), words for the other
    servers    `WordReader`, `decode_words`: strict bytes
               `draw_point`, when nothing can be added any more; one point a wave, one check a table
               `message`, or a `Verifier` over pieces: 32 bytes to the other server, and shares of the counts
               `accept`, and `subtract` for the shares of a table that is not accepted; `add_counts` without a check

Multiplicities as residues of a logarithmic derivative: Haböck, "Multivariate lookups based on logarithmic derivatives",
ePrint 2022/1530; one quadratic test on linear queries of a shared vector: Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai,
CRYPTO 2019. docs/security.md has the proofs, and what a caller must see to.

>>> import os, numpy as np
>>> from fss import field, table
>>> shape, binder = table.shape_for(3, 5), b"what names this table"
>>> made = table.share([4, 0, 1], shape, secret=os.urandom(32), context=bytes(64), binder=binder)
>>> point, sums = table.draw_point(os.urandom(32)), [np.zeros(3, np.uint64) for _ in (0, 1)]
>>> of_seed = table.message(table.expanded(made.seed, binder, shape), shape, point, sums[0])
>>> of_words = table.message([made.words], shape, point, sums[1])
>>> table.accept(of_seed, of_words, shape), field.decode(field.add(*sums))
(True, array([4, 0, 1]))
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fss import field
from fss.errors import DomainError, SelfCheckError, ShapeError
from fss.field import Words
from fss.products import product_of_linear
from fss.table_check import MESSAGE_BYTES, Message, Verifier, accept, add_counts
from fss.table_point import Point, draw_point, first_element
from fss.table_shape import FIRST_POINT, SEED_BYTES, VERSION, Shape, pair_bytes, shape_for, table_bytes, worth_it
from fss.table_words import WordReader, decode_words, encode_words, expand, expanded, seed_server

__all__ = [
    "CONTEXT_BYTES",
    "MESSAGE_BYTES",
    "SECRET_BYTES",
    "SEED_BYTES",
    "VERSION",
    "Message",
    "Point",
    "Shape",
    "Shared",
    "Verifier",
    "WordReader",
    "accept",
    "add_counts",
    "decode_words",
    "draw_point",
    "encode_words",
    "expand",
    "expanded",
    "message",
    "pair_bytes",
    "scatter",
    "seed_server",
    "shape_for",
    "share",
    "subtract",
    "table_bytes",
    "witness",
    "worth_it",
]

SECRET_BYTES = 32
CONTEXT_BYTES = 64

_LABEL = b"fss-ecdf table secrets 1\n"
# Purposes of four bytes each
_ROOT, _SEED, _RHO, _MASK, _SELF = b"root", b"seed", b"rho ", b"mask", b"self"


@dataclass(frozen=True, repr=False)
class Shared:
    """Both servers' shares of a table. Does not print them."""

    seed: bytes
    words: Words


def share(histogram: ArrayLike, shape: Shape, *, secret: bytes, context: bytes, binder: bytes) -> Shared:
    """The shares of a histogram of `shape.count` values at `shape.positions` positions.

    All randomness follows from `secret` (32 uniform bytes), `context` (64 bytes: everything that a contribution is for)
    and the histogram itself: the same three give the same bytes again, and if anything differs all randomness does.
    `binder` enters the expansion of the seed and is known to the server. Raises `DomainError` or `ShapeError` for what
    is no such histogram, and `SelfCheckError` if the check does not accept what was made.
    """
    counts = _check_histogram(histogram, shape)
    root = _root(counts, shape, secret, context)
    rho, v = (first_element(_LABEL + purpose + root, least) for purpose, least in ((_RHO, 1), (_MASK, 0)))
    seed = hashlib.shake_256(_LABEL + _SEED + root).digest(SEED_BYTES)
    words = witness(counts, shape, rho, v)
    made = Shared(seed, field.sub(words, expand(seed, binder, shape)))
    point = Point(first_element(_LABEL + _SELF + root, FIRST_POINT))
    both = message(expanded(seed, binder, shape), shape, point), message([made.words], shape, point)
    if not accept(*both, shape):
        raise SelfCheckError("the check does not accept the table that was made; do not send it, and try again")
    return made


def _check_histogram(histogram: ArrayLike, shape: Shape) -> NDArray[np.uint64]:
    counts = np.asarray(histogram)
    if counts.dtype.kind not in "iu" or counts.shape != (shape.positions,):
        raise ShapeError(f"a histogram has {shape.positions} whole numbers, got {counts.dtype} of shape {counts.shape}")
    if (counts < 0).any() or (counts > shape.count).any() or int(counts.sum(dtype=np.uint64)) != shape.count:
        raise DomainError(f"a histogram must have counts of 0 or more, and {shape.count} in all")
    return counts.astype(np.uint64)


def _root(counts: Words, shape: Shape, secret: bytes, context: bytes) -> bytes:
    """What all randomness of one table follows from."""
    for name, given, size in (("secret", secret, SECRET_BYTES), ("context", context, CONTEXT_BYTES)):
        if not isinstance(given, bytes) or len(given) != size:
            raise ShapeError(f"the {name} of a table has {size} bytes")
    sizes = shape.positions.to_bytes(8, "little") + shape.count.to_bytes(8, "little")
    return hashlib.shake_256(_LABEL + _ROOT + secret + context + sizes + counts.tobytes()).digest(64)


def witness(histogram: Words, shape: Shape, rho: int, v: int) -> Words:
    """The words that are shared: y, v, Q and v Q. `rho` is an element other than 0, `v` any element."""
    y, left = np.empty((shape.coins, shape.positions), np.uint64), histogram
    for coin in range(shape.coins - 1):
        left, y[coin] = np.divmod(left, np.uint64(shape.base))
    y[-1] = left
    # As many factors as any table of this shape can have, those too many being 1: the work is the same for all.
    labels = np.repeat(np.arange(1, shape.labels + 1, dtype=np.uint64), y.ravel().astype(np.int64))
    constant, slope = np.ones(shape.degree, np.uint64), np.zeros(shape.degree, np.uint64)
    constant[: labels.size], slope[: labels.size] = field.neg(labels), 1
    q = field.mul(product_of_linear(constant, slope), np.array(rho, np.uint64))
    mask = np.array([v], np.uint64)
    return np.concatenate([y.ravel(), mask, q, field.mul(q, mask)])


def message(pieces: Iterable[Words], shape: Shape, point: Point, sums: Words | None = None) -> Message:
    """What a server tells the other about its words, which come in pieces; its shares of the counts are added to
    `sums`."""
    verifier = Verifier(shape, point, sums)
    for piece in pieces:
        verifier.add(piece)
    return verifier.message()


def subtract(pieces: Iterable[Words], shape: Shape, point: Point, sums: Words) -> None:
    """Take a server's shares of a table that was not accepted from `sums` again."""
    verifier = Verifier(shape, point, sums, subtract=True)
    for piece in pieces:
        verifier.add(piece)
    verifier.message()


def scatter(sums: Words, positions: ArrayLike, size: int) -> Words:
    """The sums of a table's positions at the points of a domain of `size`, of which `positions` lists theirs; 0 at all
    others. Their running sums (`field.prefix_sum`) are shares of how many values are at each point or below."""
    points = np.asarray(positions)
    if points.dtype.kind not in "iu" or points.shape != sums.shape or np.unique(points).size != points.size:
        raise ShapeError(f"positions must be {sums.size} different whole numbers")
    if points.size and not 0 <= int(points.min()) <= int(points.max()) < size:
        raise DomainError(f"positions must lie in a domain of {size} points")
    out = np.zeros(size, np.uint64)
    out[points] = sums
    return out
