"""python -m bench NAME: run one benchmark; each prints a table and can write JSON."""

import sys

from bench import audit, core, demo, docs, load, system

COMMANDS = {
    "core": (core.main, "keys and noise, as ratios against raw AES, sycret, OpenDP and the paper"),
    "system": (system.main, "two real servers over TLS: uploads, sealing, evaluation, answers, memory"),
    "load": (load.main, "two servers under mixed load for ten minutes, drawn"),
    "audit": (audit.main, "known vulnerabilities of the pinned packages; needs the network"),
    "docs": (docs.main, "write the parts of docs/ that follow from the code"),
    "demo": (demo.main, "key generation and evaluation end to end, in a few seconds"),
}


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in COMMANDS:
        print("usage: python -m bench NAME [options]\n")
        for name, (_, what) in COMMANDS.items():
            print(f"  {name:<8} {what}")
        return 0 if argv in ([], ["-h"], ["--help"]) else 2
    return COMMANDS[argv[0]][0](argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
