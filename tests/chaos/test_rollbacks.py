"""The bounded part of the sequences with rollbacks; `make chaos` plays many more."""

from pathlib import Path

import pytest

from tests.chaos import rollbacks
from tests.harness.fork_server import ForkServer

SEQUENCES = 3


@pytest.mark.faults
def test_whatever_is_rolled_back_a_key_meets_one_challenge(tmp_path: Path) -> None:
    nursery = ForkServer()
    try:
        outcomes = [rollbacks.play(nursery, tmp_path / str(number), f"1/{number}") for number in range(SEQUENCES)]
    finally:
        nursery.close()
    assert sum(outcome.rollbacks for outcome in outcomes) >= SEQUENCES
    assert sum(outcome.messages for outcome in outcomes) > 0
