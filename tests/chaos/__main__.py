"""python -m tests.chaos: the long run. Every failure prints the options that play it again."""

import argparse
import json
import sys
from pathlib import Path

from tests.chaos.runner import copy_all, fleet_all, fuzz_all, lie_all, roll_back_all, simulate_all
from tests.chaos.sequence import STEPS


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--sequences", type=int, default=200, help="random sequences against two servers")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first one")
    parser.add_argument("--lies", type=int, default=300, help="random sequences against a server that lies")
    parser.add_argument("--rollbacks", type=int, default=100, help="random sequences in which a server is rolled back")
    parser.add_argument("--fleets", type=int, default=5, help="worlds of many processes in which everything is killed")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a sequence")
    parser.add_argument("--copies", type=int, default=200, help="copies of a working server's folder to start from")
    parser.add_argument("--envelopes", type=int, default=10_000_000, help="mutated uploads")
    parser.add_argument("--jobs", type=int, default=2, help="processes that play or mutate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result there")
    args = parser.parse_args(argv)
    result: dict[str, object] = {}
    simulation: dict[str, object] = {"failed": []}
    lied: dict[str, object] = {"failed": []}
    if args.sequences:
        simulation = result["simulation"] = simulate_all(args.first, args.sequences, args.seed, args.steps, args.jobs)
    if args.lies:
        lied = result["lies"] = lie_all(args.first, args.lies, args.seed, args.jobs)
    rolled: dict[str, object] = {"failed": []}
    if args.rollbacks:
        rolled = result["rollbacks"] = roll_back_all(args.first, args.rollbacks, args.seed, args.jobs)
    fleets: dict[str, object] = {"failed": []}
    if args.fleets:
        fleets = result["fleets"] = fleet_all(args.first, args.fleets, args.seed)
    if args.copies:
        result["copies"] = copy_all(args.copies, args.seed)
    if args.envelopes:
        result["fuzzing"] = fuzz_all(args.envelopes, args.seed, args.jobs)
    print(json.dumps(result, indent=2))
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(result, indent=2) + "\n")
    return int(any(part["failed"] for part in (simulation, lied, rolled, fleets)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
