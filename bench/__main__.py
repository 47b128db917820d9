"""python -m bench NAME: run one benchmark; each prints a table and can write JSON."""

import sys
from importlib import import_module

COMMANDS = {
    "core": "keys, noise and smoothing, as ratios against raw AES, sycret, OpenDP, cvxopt and the paper",
    "system": "two real servers over TLS: uploads, sealing, evaluation, answers, memory",
    "communication": "bytes on the wire: ours, a pointwise and a one-hot protocol, all real",
    "figures": "the paper's experiments, its mechanism and ours in the same pictures",
    "browser": "a party's page in Chromium: seconds for 100 000 rows, longest pause of the page",
    "scale": "PostgreSQL beside SQLite, Dask beside the local pool",
    "load": "two servers under mixed load for ten minutes, drawn",
    "audit": "known vulnerabilities of the pinned packages; needs the network",
    "index": "one page of what the others left in a folder",
    "docs": "write the parts of docs/ that follow from the code",
}
TOOLS = ("audit", "index", "docs")  # which measure nothing


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in COMMANDS:
        print("usage: python -m bench NAME [options]\n")
        for name, what in COMMANDS.items():
            print(f"  {name:<13} {what}")
        return 0 if argv in ([], ["-h"], ["--help"]) else 2
    # Only what is asked for is loaded: drawing alone takes a second.
    module = f"bench.{argv[0]}" if argv[0] in TOOLS else f"bench.{argv[0]}.run"
    code: int = import_module(module).main(argv[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
