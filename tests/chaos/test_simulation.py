"""The bounded part of the simulation; `make chaos` plays many more sequences."""

import pytest

from tests.chaos.runner import simulate

pytestmark = pytest.mark.faults

SEQUENCES = 6


def test_a_few_sequences() -> None:
    done, failed = simulate(range(SEQUENCES), seed=2)
    assert not failed
    assert sum(outcome.kills for outcome in done) >= SEQUENCES
    assert sum(outcome.answers for outcome in done) >= SEQUENCES
