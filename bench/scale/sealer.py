"""A server that answers and works at nothing in the background, also on SQLite: what it costs is what it was asked."""

import argparse
import sys
from pathlib import Path

from servers.api.app import build_app
from servers.api.serve import listen, serve
from servers.run import now
from servers.server import API, no_crash
from servers.settings import load


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale.sealer", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    settings = load(parser.parse_args(argv).config)
    serve(build_app(settings, now, no_crash, frozenset((API,))), settings, listen(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
