"""python -m tools.update: the newest versions that fit pyproject.toml, pinned in constraints.txt.

They are found by installing everything, without pins, into an empty environment. `make update` then runs all checks.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "constraints.txt"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.update", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=TARGET)
    args = parser.parse_args(argv)
    before, after = TARGET.read_text().splitlines(), pins(newest())
    args.out.write_text("\n".join(after) + "\n")
    print("\n".join(changes(before, after)) or "nothing is newer")
    return 0


def newest() -> str:
    """What pip would install today for every extra."""
    extras = ",".join(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", f"{ROOT}[{extras}]"], check=True)
        done = subprocess.run([*pip, "freeze", "--exclude", "fss-ecdf"], check=True, capture_output=True, text=True)
    return done.stdout


def pins(frozen: str) -> list[str]:
    """One line a package, in the order of their names."""
    lines = [line for line in frozen.splitlines() if "==" in line and not line.startswith(("#", "-"))]
    return sorted(lines, key=lambda line: line.partition("==")[0].lower())


def changes(before: list[str], after: list[str]) -> list[str]:
    """What is other than before, for the one who reads it."""
    old, new = (dict(line.split("==", 1) for line in lines) for lines in (before, after))
    gone = [f"{name} {old[name]} is not needed any more" for name in old if name not in new]
    come = [f"{name} {new[name]} is new" for name in new if name not in old]
    return [*gone, *come, *(f"{n} {old[n]} -> {new[n]}" for n in new if n in old and old[n] != new[n])]


if __name__ == "__main__":
    sys.exit(main())
