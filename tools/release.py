"""python -m tools.release: everything a release needs, up to publishing, which it does not do.

The package is built from what is committed, checked, installed into an empty environment with the pinned versions, and
has to run the demo there, away from the checkout. Everything is left in the folder that is named.
"""

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEMO = ("--hospitals", "3", "--patients", "3000")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where everything is written; emptied before")
    parser.add_argument("--commit", default="HEAD", help="what is released")
    args = parser.parse_args(argv)
    out: Path = args.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    source = _export(args.commit, out / "source")
    number = version(source)
    (out / "notes.md").write_text(notes((source / "CHANGELOG.md").read_text(), number))
    _require_cited(source, number)
    wheel = _build(source, out)
    programs = _install(wheel, source, out / "environment")
    _bill_of_materials(programs, out / "sbom.json")
    _demo(programs, out)
    for folder in ("source", "environment"):
        shutil.rmtree(out / folder)
    print(f"\nversion {number} is ready in {out}; nothing was published. What is left to do:")
    print(f"  git tag --sign v{number} {args.commit}, and upload {wheel.name} and the .tar.gz beside it")
    return 0


def version(source: Path) -> str:
    """From the one place where it is written."""
    found: str = tomllib.loads((source / "pyproject.toml").read_text())["project"]["version"]
    return found


def notes(changelog: str, number: str) -> str:
    """The changelog's section of a version; before its day that is the one of what is not released."""
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for title in (number, "Unreleased"):
        for section in sections:
            head, _, text = section.partition("\n")
            if head.split()[0] == title and text.strip():
                return f"## {number}\n{text.rstrip()}\n"
    raise SystemExit(f'CHANGELOG.md has no section "## {number}" and no "## Unreleased" with anything in it')


def _export(commit: str, target: Path) -> Path:
    """What is committed, and nothing else that lies about in the folder."""
    packed = subprocess.run(["git", "archive", "--format=tar", commit], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(target, filter="data")
    return target


def _require_cited(source: Path, number: str) -> None:
    cited = re.search(r'^version: "?([^"\n]+)', (source / "CITATION.cff").read_text(), re.MULTILINE)
    if cited is None or cited[1] != number:
        raise SystemExit(f"CITATION.cff names another version than pyproject.toml, which has {number}")


def _build(source: Path, out: Path) -> Path:
    _run([sys.executable, "-m", "build", "--outdir", out, source], "built")
    made = [*out.glob("*.whl"), *out.glob("*.tar.gz")]
    _run([sys.executable, "-m", "twine", "check", "--strict", *made], "metadata checked")
    (wheel,) = out.glob("*.whl")
    return wheel


def _install(wheel: Path, source: Path, environment: Path) -> Path:
    _run([sys.executable, "-m", "venv", environment], "an empty environment")
    programs = environment / "bin"
    words: list[str | Path] = [programs / "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*words, "--constraint", source / "constraints.txt", f"{wheel}[all]"], "installed into it")
    return programs


def _bill_of_materials(programs: Path, target: Path) -> None:
    """What an installation has in it, as CycloneDX."""
    words: list[str | Path] = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    _run([*words, "--output-file", target, programs / "python"], "bill of materials written")


def _demo(programs: Path, out: Path) -> None:
    """From the installed package: the checkout is neither the working folder nor on the path."""
    _run([programs / "fss-ecdf", "demo", "--out", out / "demo", *DEMO], "demo run from the package")
    for name in ("report.html", "truth.png"):
        if not (out / "demo" / name).stat().st_size:
            raise SystemExit(f"the demo left no {name}")


def _run(words: list[str | Path], what: str) -> None:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # An empty working folder, so that nothing of the checkout is imported.
    away = ROOT / "build" / "away"
    away.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(list(map(str, words)), cwd=away, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}\nnot released: {' '.join(map(str, words[:4]))} ... failed")
    print(what)


if __name__ == "__main__":
    sys.exit(main())
