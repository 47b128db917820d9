"""What the image is built with, and what must be true of it: its size, no compiler, its labels and its health check."""

import json
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES = 350_000_000  # above its base
TITLE = "org.opencontainers.image.title"
COMPILERS = ("cc", "gcc", "c++", "ld", "as", "pip")


def build_arguments() -> list[str]:
    """What the Dockerfile does not know by itself."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    given = {"VERSION": version("fss-ecdf"), "REVISION": done.stdout.strip() or "unknown"}
    return [word for name, value in given.items() for word in ("--build-arg", f"{name}={value}")]


def require_slim(engine: str, image: str, base: str) -> int:
    """Bytes above the base. Ends the program where they are too many, or something is in it that should not be."""
    about = _inspect(engine, image)
    size = int(about["Size"]) - int(_inspect(engine, base)["Size"])
    if size > MOST_BYTES:
        raise SystemExit(f"the image has {size / 1e6:.0f} MB above its base, and may have {MOST_BYTES / 1e6:.0f}")
    if about["Config"].get("Labels", {}).get(TITLE) != "fss-ecdf" or not _health_check(about):
        raise SystemExit("the image has no labels, or no health check")
    look = f"for name in {' '.join(COMPILERS)}; do command -v $name && exit 1; done; exit 0"
    run = [engine, "run", "--rm", "--network", "none", "--entrypoint", "sh", image, "-c", look]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the image has {done.stdout.strip()}{done.stderr.strip()}")
    return size


def _health_check(about: dict[str, Any]) -> Any:
    return about["Config"].get("Healthcheck") or about.get("Healthcheck")


def _inspect(engine: str, image: str) -> dict[str, Any]:
    done = subprocess.run([engine, "image", "inspect", image], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)[0]
    return found
