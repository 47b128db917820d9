"""Tables: the library against the scalar oracle and the frozen vectors, bytes, pieces, and what is refused."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fss import DomainError, KeyType, Scheme, SelfCheckError, ShapeError, TableFormatError, field, products, table
from fss.table_shape import most_coins
from tests.oracle import table as oracle
from tests.vectors.make_table import body

pytestmark = pytest.mark.usefixtures("each_backend")

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "fss_table.json").read_text())
SECRET, CONTEXT, BINDER, CHALLENGE = (
    bytes.fromhex(VECTORS[name]) for name in ("secret", "context", "binder", "challenge")
)
POINT = table.draw_point(CHALLENGE)
KEYS = KeyType(Scheme.DCF, 11, 0, b"-")


def shared(histogram: Sequence[int], *, secret: bytes = SECRET, context: bytes = CONTEXT) -> table.Shared:
    shape = table.shape_for(len(histogram), sum(histogram))
    return table.share(histogram, shape, secret=secret, context=context, binder=BINDER)


def checked(made: table.Shared, shape: table.Shape, point: table.Point) -> tuple[bool, list[int]]:
    """Whether a table is accepted, and its counts."""
    sums = [np.zeros(shape.positions, np.uint64) for _ in (0, 1)]
    of_seed = table.message(table.expanded(made.seed, BINDER, shape), shape, point, sums[0])
    of_words = table.message([made.words], shape, point, sums[1])
    return table.accept(of_seed, of_words, shape), field.decode(field.add(*sums)).tolist()


def test_the_vectors_are_those_of_the_oracle() -> None:
    assert body() == VECTORS


@pytest.mark.parametrize("case", VECTORS["good"], ids=lambda case: f"{len(case['histogram'])}-{sum(case['histogram'])}")
def test_good_vectors(case: dict[str, Any]) -> None:
    histogram = case["histogram"]
    shape = table.shape_for(len(histogram), sum(histogram))
    assert (shape.base, shape.coins, shape.degree) == (case["base"], case["coins"], case["degree"])
    made = shared(histogram)
    assert made.seed.hex() == case["seed"]
    assert table.encode_words(made.words, shape).hex() == case["words"]
    assert POINT.tau == VECTORS["tau"]
    shares = table.expand(made.seed, BINDER, shape), table.decode_words(bytes.fromhex(case["words"]), shape)
    for share, message, counts in zip(shares, case["messages"], case["counts"], strict=True):
        sums = np.zeros(shape.positions, np.uint64)
        told = table.message([share], shape, POINT, sums)
        assert told.to_bytes().hex() == message
        assert sums.tolist() == counts
        assert table.Message.from_bytes(bytes.fromhex(message)) == told
    assert checked(made, shape, POINT) == (True, histogram)


@pytest.mark.parametrize("case", VECTORS["bad"], ids=lambda case: case["name"])
@pytest.mark.parametrize("size", [1, 7, 8, 1000])
def test_malformed_words(case: dict[str, Any], size: int) -> None:
    data, shape = bytes.fromhex(case["words"]), table.shape_for(3, 5)
    with pytest.raises(TableFormatError, match=case["error"]):
        table.decode_words(data, shape)
    reader = table.WordReader(shape)
    with pytest.raises(TableFormatError, match=case["error"]):
        _feed(reader, data, size)


def _feed(reader: table.WordReader, data: bytes, size: int) -> list[int]:
    words = [x for start in range(0, len(data), size) for x in reader.feed(data[start : start + size]).tolist()]
    reader.finish()
    return words


@pytest.mark.parametrize("case", VECTORS["rejected"], ids=lambda case: case["name"])
def test_rejected_vectors(case: dict[str, Any]) -> None:
    shape = table.shape_for(2, 2)
    told = table.message([table.decode_words(bytes.fromhex(case["words"]), shape)], shape, POINT)
    assert told.to_bytes().hex() == case["message"]
    assert not table.accept(told, table.Message(0, 0, 0, 0), shape)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_histogram_against_the_oracle(data: st.DataObject) -> None:
    large = data.draw(st.sampled_from([1, 3, 60]))
    histogram = data.draw(st.lists(st.integers(0, large), min_size=1, max_size=12).filter(any))
    shape = table.shape_for(len(histogram), sum(histogram))
    assert (shape.base, shape.coins, shape.degree) == oracle.shape(shape.positions, shape.count)
    slow = oracle.TableOracle(shape.positions, shape.count, shape.base, shape.coins, shape.degree)
    drawn = oracle.secrets(SECRET, CONTEXT, histogram, shape.count)
    whole = slow.witness(histogram, drawn.rho, drawn.v)
    counts = np.array(histogram, np.uint64)
    assert table.witness(counts, shape, drawn.rho, drawn.v).tolist() == whole
    made = shared(histogram)
    mask = oracle.expand(drawn.seed, BINDER, shape.positions, shape.count, shape.words)
    assert (made.seed, made.words.tolist()) == (drawn.seed, slow.share(whole, mask))
    challenge = data.draw(st.binary(min_size=32, max_size=40))
    point = table.draw_point(challenge)
    assert point.tau == oracle.point(challenge)
    assert point.mask(shape) == slow.g(point.tau)
    assert table.message([made.words], shape, point).elements == slow.message(made.words.tolist(), point.tau)
    assert checked(made, shape, point) == (True, histogram)


@pytest.mark.parametrize(("positions", "count"), [(1, 70_000), (2002, 500), (1001, 5000), (40_000, 300), (5, 12_345)])
def test_larger_tables(positions: int, count: int) -> None:
    """More words than are read at once, and more factors than are multiplied one by one."""
    rng = np.random.default_rng(positions)
    for drawn in (rng.integers(0, positions, count), np.full(count, positions - 1)):
        histogram = np.bincount(drawn, minlength=positions).tolist()
        shape = table.shape_for(positions, count)
        made = shared(histogram)
        assert checked(made, shape, POINT) == (True, histogram)
        other = made.words.copy()
        other[rng.integers(other.size)] ^= np.uint64(1)
        assert not checked(table.Shared(made.seed, other), shape, POINT)[0]


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(0, 4000), min_size=1, max_size=30))
def test_pieces_of_any_size_give_what_the_whole_gives(sizes: list[int]) -> None:
    histogram = [30, 0, 500, 7] * 60
    shape = table.shape_for(len(histogram), sum(histogram))
    assert shape.coins > 1
    made = shared(histogram)
    data, at = table.encode_words(made.words, shape), 0
    sums, whole = np.zeros(240, np.uint64), np.zeros(240, np.uint64)
    reader, verifier = table.WordReader(shape), table.Verifier(shape, POINT, sums)
    for size in [*sizes, len(data)]:
        verifier.add(reader.feed(data[at : at + size]))
        at += size
    reader.finish()
    assert verifier.message() == table.message([made.words], shape, POINT, whole)
    assert np.array_equal(sums, whole)
    table.subtract([made.words], shape, POINT, sums)
    assert not sums.any()


def test_words_too_few_or_too_many_have_no_message() -> None:
    shape, made = table.shape_for(3, 5), shared([2, 0, 3])
    with pytest.raises(ShapeError, match=f"has {shape.words} words, got {shape.words - 1}"):
        table.message([made.words[:-1]], shape, POINT)
    with pytest.raises(ShapeError, match="got more"):
        table.message([made.words, made.words[:1]], shape, POINT)


def test_the_degree_is_never_too_small() -> None:
    """Against all histograms of few values; digits as the oracle has them."""
    for positions, count in [(1, 20), (2, 13), (3, 9)]:
        everything = [h for h in np.ndindex(*[count + 1] * positions) if sum(h) == count]
        for base in (2, 3, 4):
            for coins in (1, 2, 3, 4):
                of = oracle.TableOracle(positions, count, base, coins, 0)
                most = max(sum(of.digits(h)) for h in everything)
                bound = most_coins(positions, count, base, coins)
                assert most <= bound == oracle.most_coins(positions, count, base, coins)


@pytest.mark.parametrize("sizes", VECTORS["shapes"], ids=str)
def test_shapes(sizes: list[int]) -> None:
    shape = table.shape_for(*sizes[:2])
    assert [shape.positions, shape.count, shape.base, shape.coins, shape.degree] == sizes
    assert shape.bytes == 8 * shape.words == 8 * (shape.labels + 1 + 2 * (shape.degree + 1))
    assert shape.error == (shape.labels + 2 * shape.degree) / (2**61 - 1 - 2**32)


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (2**20 + 1, 5), (5, 2**32), (-1, 5), (5, True), (2.0, 5)])
def test_sizes_out_of_range(sizes: tuple[Any, Any]) -> None:
    with pytest.raises(DomainError, match="of a table must be an int"):
        table.shape_for(*sizes)


@pytest.mark.parametrize(
    "wrong", [(5, 5, 1, 1, 5), (5, 5, 2, 0, 5), (5, 5, 2, 1, 0), (5, 5, 2, 62, 5), (2**20, 5, 2, 2**12, 5)]
)
def test_shapes_for_which_nothing_is_proved(wrong: tuple[int, int, int, int, int]) -> None:
    with pytest.raises(DomainError):
        table.Shape(*wrong)


def test_anything_else_gives_other_randomness() -> None:
    """The secret, every byte of the context, the sizes and every count; and only these."""
    made = [
        shared([2, 0, 3]),
        shared([0, 2, 3]),
        shared([2, 0, 3, 0]),
        shared([2, 0, 4]),
        shared([2, 0, 3], secret=bytes(32)),
    ]
    for i in range(64):
        made.append(shared([2, 0, 3], context=CONTEXT[:i] + bytes([CONTEXT[i] ^ 1]) + CONTEXT[i + 1 :]))
    assert len({m.seed for m in made}) == len(made)
    assert len({int(m.words[3]) for m in made}) == len(made)
    again = shared([2, 0, 3])
    assert (again.seed, again.words.tolist()) == (made[0].seed, made[0].words.tolist())
    other = table.expand(again.seed, BINDER + b"x", table.shape_for(3, 5))
    assert not (other == table.expand(again.seed, BINDER, table.shape_for(3, 5))).any()
    assert not (other[:10] == table.expand(again.seed, BINDER + b"x", table.shape_for(3, 6))[:10]).any()


def test_an_error_of_the_product_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One coefficient off by one, anywhere, as a wrong rounding would have it."""
    right = products.product_of_linear
    for at in range(6):

        def wrong(constant: field.Words, slope: field.Words, at: int = at) -> field.Words:
            out = right(constant, slope)
            out[at] = field.canonical(out[at : at + 1] + np.uint64(1))[0]
            return out

        monkeypatch.setattr(table, "product_of_linear", wrong)
        with pytest.raises(SelfCheckError, match="do not send it"):
            shared([2, 0, 3])


def test_products_that_round_badly_are_made_with_smaller_limbs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, field.P, (2, 40), dtype=np.uint64) for _ in (0, 1))
    slow = [[sum(int(x[i]) * int(y[k - i]) for i in range(max(0, k - 39), min(40, k + 1))) % field.P for k in range(80)]
            for x, y in zip(a, b, strict=True)]  # fmt: skip
    assert products.multiply(a, b).tolist() == slow
    monkeypatch.setattr(products, "_LIMB_BITS", (11,))
    assert products.multiply(a, b).tolist() == slow
    monkeypatch.setattr(products, "_LIMB_BITS", (30, 11))
    assert products.multiply(a, b).tolist() == slow
    monkeypatch.setattr(products, "_LIMB_BITS", (30,))
    with pytest.raises(SelfCheckError, match="too long for floating point"):
        products.multiply(a, b)


@pytest.mark.parametrize(
    ("histogram", "error"),
    [([2, 0], ShapeError), ([2, 0, 3, 0], ShapeError), ([2.0, 0.0, 3.0], ShapeError), ([2, 0, 2], DomainError),
     ([6, -1, 0], DomainError), ([[2, 0, 3]], ShapeError), ([2**63, 2**63, 5], DomainError)],
)  # fmt: skip
def test_other_histograms_are_refused(histogram: object, error: type[Exception]) -> None:
    given_ = np.array(histogram, np.uint64) if error is DomainError and histogram == [2**63, 2**63, 5] else histogram
    with pytest.raises(error):
        table.share(given_, table.shape_for(3, 5), secret=SECRET, context=CONTEXT, binder=BINDER)  # type: ignore[arg-type]


def test_lengths_are_exact() -> None:
    shape, good = table.shape_for(3, 5), {"secret": SECRET, "context": CONTEXT, "binder": BINDER}
    for name, value in (("secret", SECRET[1:]), ("secret", SECRET + b"x"), ("context", CONTEXT[1:]), ("binder", b"")):
        with pytest.raises(ShapeError):
            table.share([2, 0, 3], shape, **{**good, name: value})
    with pytest.raises(ShapeError, match="32 bytes or more"):
        table.draw_point(bytes(31))
    with pytest.raises(TableFormatError, match="has 32 bytes"):
        table.expand(bytes(31), BINDER, shape)
    for data in (bytes(31), bytes(33), b"\xff" * 32):
        with pytest.raises(TableFormatError):
            table.Message.from_bytes(data)
    with pytest.raises(ShapeError):
        table.encode_words(np.zeros(3, np.uint64), shape)
    with pytest.raises(ShapeError, match="at least one byte"):
        table.seed_server(b"")
    assert {table.seed_server(bytes([i]) * 16) for i in range(4)} == {0, 1}


def test_sums_of_the_wrong_size_are_refused() -> None:
    wrong: list[Any] = [np.zeros(4, np.uint64), np.zeros(6, np.uint64)[::2], np.zeros(3, np.int64)]
    for sums in (*wrong, np.full(3, field.P, np.uint64)):
        with pytest.raises((ShapeError, DomainError)):
            table.Verifier(table.shape_for(3, 5), POINT, sums)


def test_scattered_counts_become_a_curve() -> None:
    """Three real positions of a domain of eight."""
    shape, made = table.shape_for(3, 5), shared([2, 0, 3])
    sums = [np.zeros(3, np.uint64) for _ in (0, 1)]
    table.message(table.expanded(made.seed, BINDER, shape), shape, POINT, sums[0])
    table.message([made.words], shape, POINT, sums[1])
    curves = [field.prefix_sum(table.scatter(s, [1, 4, 6], 8)) for s in sums]
    assert field.decode(field.add(*curves)).tolist() == [0, 2, 2, 2, 2, 2, 5, 5]
    for positions in ([1, 4], [1, 4, 4], [1.0, 4.0, 6.0]):
        with pytest.raises(ShapeError):
            table.scatter(sums[0], positions, 8)
    for positions in ([1, 4, 8], [-1, 4, 6]):
        with pytest.raises(DomainError):
            table.scatter(sums[0], positions, 8)


def test_the_public_rule() -> None:
    """Bytes of keys and proofs are those of the library: 2 (key + proof) a value."""
    assert table.pair_bytes(KEYS) == 2 * (KEYS.key_bytes + 8 * (6 + KEYS.leaves))
    for positions in (1, 10, 2002):
        for count in range(120):
            small = count > 0 and 8 * table.shape_for(positions, count).words + 96 <= count * table.pair_bytes(KEYS)
            assert table.worth_it(positions, count, KEYS) == small
    assert not table.worth_it(2002, 0, KEYS)
    assert not table.worth_it(2002, 1, KEYS)
    assert table.worth_it(2002, 500, KEYS)


def test_the_bounds_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    for tables, positions, count in ((40, 2002, 500), (2000, 2048, 50_000), (2000, 1 << 20, 50_000)):
        one = table.shape_for(positions, count).error
        sizes = (
            f"| {tables} | {positions:,} | {count:,} |".replace(",", " ")
            .replace("2 002", "2002")
            .replace("2 048", "2048")
        )
        assert f"{sizes} 2^{math.log2(one):.1f} | 2^{math.log2(tables * one):.1f} |" in page


def test_nothing_secret_is_printed() -> None:
    made = shared([2, 0, 3])
    assert str(int(made.words[0])) not in repr(made)
    assert str(POINT.tau) not in repr(POINT)
