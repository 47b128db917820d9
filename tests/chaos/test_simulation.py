"""The bounded part of the simulation; `make chaos` plays many more sequences."""

import pytest

from tests.chaos.runner import simulate_all
from tests.chaos.sequence import STEPS

pytestmark = pytest.mark.faults

SEQUENCES = 6


def test_a_few_sequences() -> None:
    result = simulate_all(0, SEQUENCES, seed=2, steps=STEPS, jobs=2)
    assert result["failed"] == []
    assert result["kills"] >= SEQUENCES
    assert result["answers"] >= SEQUENCES
