from fss.field import Words
from fss.plan import Points

def gen(
    has_values: bool,
    bits: int,
    keys: bytes,
    alphas: Words,
    rand: Words,
    beta: Words,
    words0: Words,
    words1: Words,
    ends: Words,
) -> None: ...
def prove(
    has_values: bool,
    bits: int,
    keys: bytes,
    alphas: Words,
    rand: Words,
    ends: Words,
    constants: Words,
    words0: Words,
    words1: Words,
) -> None: ...
def each(has_values: bool, bits: int, keys: bytes, words: Words, points: Points | None, out: Words) -> None: ...
def add(has_values: bool, bits: int, keys: bytes, words: Words, points: Points | None, out: Words) -> None: ...
def observe(
    has_values: bool, bits: int, keys: bytes, words: Words, weights: Words, out: Words, seen: Words
) -> None: ...
def canonical(words: Words) -> None: ...
def hash_alone(keys: bytes, seeds: Words, times: int) -> int: ...
def sets() -> tuple[str, ...]: ...
def choose(name: str) -> None: ...
