"""python -m tests.chaos: the long run. Every failure prints the options that play it again."""

import argparse
import json
import sys
from pathlib import Path

from tests.chaos.runner import simulate_all
from tests.chaos.sequence import STEPS


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--sequences", type=int, default=200, help="random sequences against two servers")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first one")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a sequence")
    parser.add_argument("--jobs", type=int, default=2, help="sequences at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result there")
    args = parser.parse_args(argv)
    result = simulate_all(args.first, args.sequences, args.seed, args.steps, args.jobs)
    print(json.dumps(result, indent=2))
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if result["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
