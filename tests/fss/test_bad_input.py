"""Every wrong call is answered by a ValueError that names what was given and what was expected."""

from collections.abc import Callable

import numpy as np
import pytest

from fss import DomainError, FssError, KeyBatch, KeyMismatchError, KeyType, Scheme, ShapeError, dcf, dpf
from tests.fss.helpers import BINDER, make

RAND = bytes(32)


def gen(alphas: object = (1,), bits: object = 4, rand: bytes = RAND, **more: object) -> object:
    return dcf.gen(np.asarray(alphas), bits=bits, binder=BINDER, rand=rand, **more)  # type: ignore[arg-type]


KEYS, OTHERS = make(dcf, [1, 2, 3], 4), make(dpf, [1, 2, 3], 4)

CASES: list[tuple[str, type[FssError], str, Callable[[], object]]] = [
    ("no bits", DomainError, "an int, 1 to 32, got 0", lambda: gen(bits=0)),
    ("too many bits", DomainError, "an int, 1 to 32, got 33", lambda: gen(bits=33)),
    (
        "alpha too large",
        DomainError,
        "alpha number 1 is outside the domain 0 to 15",
        lambda: gen([3, 16], rand=RAND * 2),
    ),
    ("bits of another type", DomainError, r"an int, 1 to 32, got np.int64\(4\)", lambda: gen(bits=np.int64(4))),
    ("a scheme by number", DomainError, "scheme must be a Scheme", lambda: _type(1, 0)),
    ("a party by float", DomainError, "server must be 0 or 1, got 1.0", lambda: _type(Scheme.DCF, 1.0)),
    ("negative alpha", DomainError, "alpha number 0", lambda: gen([-1])),
    ("alpha not whole", ShapeError, "1-d integer array.*float64", lambda: gen([0.5])),
    ("alphas in a matrix", ShapeError, r"shape \(1, 1\)", lambda: gen([[1]])),
    ("too little randomness", ShapeError, "32 bytes a key, 32 for 1 keys; got 31", lambda: gen(rand=RAND[:31])),
    ("beta too large", DomainError, r"beta must lie in \[0, p\)", lambda: gen(beta=2**61 - 1)),
    ("wrong number of betas", ShapeError, "an integer or 1 of them", lambda: gen(beta=[1, 2])),
    ("empty binder", ShapeError, "nonce", lambda: dcf.gen([1], bits=4, binder=b"", rand=RAND)),
    ("point outside", DomainError, r"point 16 \(number 1\) is outside the domain 0 to 15", lambda: _at([0, 16])),
    ("negative point", DomainError, "point -1", lambda: _at([-1])),
    ("no points", ShapeError, "non-empty", lambda: _at(np.zeros(0, np.int64))),
    ("points not whole", ShapeError, "integer array", lambda: _at([0.5])),
    ("no threads", DomainError, "at least 1, got 0", lambda: dcf.sum_over_domain(KEYS[0], threads=0)),
    ("dpf keys for dcf", KeyMismatchError, "these are DPF keys, expected DCF", lambda: dcf.sum_over_domain(OTHERS[0])),
    ("dcf keys for dpf", KeyMismatchError, "these are DCF keys, expected DPF", lambda: dpf.at_point(KEYS[0], 1)),
    ("whole domain too large", DomainError, "at most 26 bits", lambda: dcf.sum_over_domain(make(dcf, [1], 32)[0])),
    ("wrong dtype", ShapeError, "uint64", lambda: KeyBatch(KEYS[0].type, KEYS[0].words.astype(np.int64))),
    ("wrong shape", ShapeError, r"\(19, keys\), got \(18, 3\)", lambda: KeyBatch(KEYS[0].type, KEYS[0].words[1:])),
    ("key-major", ShapeError, "level-major", lambda: KeyBatch(KEYS[0].type, np.asfortranarray(KEYS[0].words))),
    ("a third party", DomainError, "server must be 0 or 1, got 2", lambda: KeyType(Scheme.DCF, 4, 2, BINDER)),
    ("both parties' keys", KeyMismatchError, "server 1 where server 0", lambda: KeyBatch.concatenate(KEYS)),
    ("nothing to concatenate", ShapeError, "zero batches", lambda: KeyBatch.concatenate([])),
    ("two campaigns", KeyMismatchError, "two campaigns", lambda: KeyBatch.concatenate([KEYS[0], _elsewhere()])),
    ("cut by a step", ShapeError, "step 1", lambda: KEYS[0][::2]),
]


def _type(scheme: object, party: object) -> object:
    return KeyType(scheme, 4, party, BINDER)  # type: ignore[arg-type]


def _at(points: object) -> object:
    return dcf.at_points(KEYS[0], points)  # type: ignore[arg-type]


def _elsewhere() -> KeyBatch:
    return dcf.gen([1], bits=4, binder=b"another campaign", rand=RAND)[0]


@pytest.mark.parametrize(("error", "message", "call"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_wrong_calls(error: type[FssError], message: str, call: Callable[[], object]) -> None:
    assert issubclass(error, ValueError)
    with pytest.raises(error, match=message):
        call()


def test_an_error_about_alpha_does_not_say_it() -> None:
    with pytest.raises(DomainError) as caught:
        gen([4711], bits=4)
    assert "4711" not in str(caught.value)
