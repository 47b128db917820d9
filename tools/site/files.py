"""The page of all files: each with the first sentence that stands in it."""

import ast
import re
from pathlib import Path

from tools.site.kinds import ROOT

PACKAGES = ("fss", "fss_ecdf", "dealer", "servers", "analyst", "tests/harness", "bench", "tools")
KINDS = (".py", ".c", ".h", ".js")


def page() -> str:
    parts = ["# Every file\n\nIn the order of imports: what stands below knows what stands above.\n"]
    for package in PACKAGES:
        for folder in sorted({path.parent for path in files(package)}):
            rows = [f"- `{path.name}`: {about(path)}" for path in files(package) if path.parent == folder]
            parts.append(f"## {folder.relative_to(ROOT)}/\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def files(package: str) -> list[Path]:
    """Those that say something; a package's __init__ speaks for its folder."""
    return sorted(p for p in (ROOT / package).rglob("*") if p.suffix in KINDS and p.read_text().strip())


def about(path: Path) -> str:
    """A file's first sentence."""
    text = path.read_text()
    if path.suffix == ".py":
        said = ast.get_docstring(ast.parse(text)) or ""
    elif path.suffix == ".js":
        said = " ".join(line.removeprefix("//") for line in _first_comment(text))
    else:
        said = text.partition("/*")[2].partition("*/")[0]
    said = " ".join(re.sub(r"^\s*\* ?", "", line).strip() for line in said.split("\n\n")[0].splitlines())
    said = re.split(r"(?<=[.!?]) +(?=[A-Z`\"{])", " ".join(said.split()))[0]
    return said.removesuffix(": 1.").removesuffix(".").replace("<", "&lt;") + "."


def _first_comment(text: str) -> list[str]:
    lines = text.splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return lines[:end]
