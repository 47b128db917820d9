"""How drafts of the check of tables were broken: each attack on a variant without one detail.

The variant (tests/oracle/table.py) accepts, or tells something; the protocol, in the oracle and in the library, does
not.
"""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fss import table
from fss.field import P
from tests.fss import table_attacks
from tests.fss.table_attacks import Forgery, forgeries, library_accepts, of, points
from tests.oracle.table import TableOracle

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("forgery", list(forgeries()), ids=lambda f: f.name.replace(" ", "-"))
def test_forgeries(forgery: Forgery) -> None:
    for point in points():
        assert forgery.without.accepts(forgery.without.message(forgery.words, point.tau))
        assert not forgery.whole.accepts(forgery.whole.message(forgery.words, point.tau))
        assert not library_accepts(forgery.shape, forgery.words, point)


def test_all_of_them_without_assertions() -> None:
    command = [sys.executable, "-O", "-m", "tests.fss.table_attacks"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "none is accepted (assertions off)\n"), run.stderr


def test_the_list_would_name_a_forgery(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def without_total(zero: table.Message, one: table.Message, shape: table.Shape) -> bool:
        a, b, c, _ = (x + y for x, y in zip(zero.elements, one.elements, strict=True))
        return a % P != 0 and (a * b - c) % P == 0

    monkeypatch.setattr(table, "accept", without_total)
    assert table_attacks.main() == 1
    assert "no total, less\nno total, more (assertions" in capsys.readouterr().out


def test_a_multiplication_triple_of_the_party_must_not_be_trusted() -> None:
    """Instead of W, a party shares alpha, beta and gamma for multiplying a = Q(tau) by b = S(tau). Here a b exceeds
    Q'(tau) by 5 at every point: with gamma = alpha beta - 5 the wrong (-4, 6) is always accepted."""
    oracle, words, v, alpha, beta = of(2, 2), table_attacks.beaver_forgery(), 7, 1234, 5678
    for point in points():
        a, b, c, _ = oracle.message(words, point.tau)
        plain, slope = b - v * oracle.g(point.tau), c - oracle.g(point.tau) * v * a  # the draft had no mask
        for gamma, accepted in ((alpha * beta, False), (alpha * beta - 5, True)):
            d, e = a - alpha, plain - beta
            product = d * e + d * beta + e * alpha + gamma
            assert ((product - slope) % P == 0) == accepted
        assert not library_accepts(table.shape_for(2, 2), words, point)


def test_without_v_a_server_confirms_a_guess() -> None:
    oracle, tau = of(3, 2), points()[0].tau
    guesses = [h for h in itertools.product(range(3), repeat=3) if sum(h) == 2]
    seen = {h: oracle.message(oracle.witness(h, 99, 0), tau).b for h in guesses}
    assert len(set(seen.values())) == len(guesses)
    # v is drawn: the same counts for something else have another b
    shape, point = table.shape_for(3, 2), points()[0]
    told = set()
    for number in range(8):
        made = table.share([1, 0, 1], shape, secret=bytes(32), context=bytes([number]) * 64, binder=b"-")
        both = (
            table.message(table.expanded(made.seed, b"-", shape), shape, point),
            table.message([made.words], shape, point),
        )
        told.add((both[0].b + both[1].b) % P)
    assert len(told) == 8


def test_two_points_show_everything() -> None:
    """Why a table must be checked once: of all histograms of 4 values at 5 positions, two messages leave one."""
    oracle, truth = of(5, 4), (0, 1, 0, 3, 0)
    taus = [point.tau for point in points()[:2]]
    words = oracle.witness(truth, 123456789, 987654321)
    seen = [oracle.message(words, tau) for tau in taus]
    guesses = [h for h in itertools.product(range(5), repeat=5) if sum(h) == 4]

    def left(tries: int) -> list[tuple[int, ...]]:
        """Guesses for which some v and rho explain so many messages."""
        found = []
        for guess in guesses:
            plain = [oracle.message(oracle.witness(guess, 1, 0), tau) for tau in taus]
            masks = {
                (s.b - m.b) * pow(oracle.g(t), -1, P) % P
                for s, m, t in list(zip(seen, plain, taus, strict=True))[:tries]
            }
            factors = {s.a * pow(m.a, -1, P) % P for s, m in list(zip(seen, plain, strict=True))[:tries]}
            if len(masks) == len(factors) == 1:
                found.append(guess)
        return found

    assert left(1) == guesses
    assert left(2) == [truth]


def test_words_that_are_made_when_the_point_is_known_pass() -> None:
    """What no check can see: a party and a server that make words together after the point is drawn. Whoever calls this
    has shares bound by digests before (docs/security.md)."""
    oracle, point = of(2, 2), points()[0]
    words = oracle.forged([3, -1], [1, 0, 0], 7)
    a, b, c, _ = oracle.message(words, point.tau)
    first = oracle.labels + 2 + oracle.degree  # W_0, which counts g
    words[first] = (words[first] + (a * b - c) * pow(oracle.g(point.tau), -1, P)) % P
    assert library_accepts(table.shape_for(2, 2), words, point)
    assert not library_accepts(table.shape_for(2, 2), words, points()[1])


def test_the_total_is_that_of_the_coins() -> None:
    """Digits that are too large are counts all the same, if they add up to as many values."""
    shape = table.Shape(2, 10, 2, 3, 10)
    oracle = TableOracle(2, 10, 2, 3, 10)
    q = [5]
    for label, times in enumerate([4, 0, 1, 0, 0, 1], start=1):
        for _ in range(times):
            q = [(a - label * b) % P for a, b in zip([0, *q], [*q, 0], strict=True)]
    words = oracle.forged([4, 0, 1, 0, 0, 1], q, 7)
    assert library_accepts(shape, words, points()[0])
    assert oracle.counts(words) == [6, 4]
    sums = np.zeros(2, np.uint64)
    table.message([np.array(words, np.uint64)], shape, points()[0], sums)
    assert sums.tolist() == [6, 4]
