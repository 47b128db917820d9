"""Imports point one way: fss <- campaign <- client <- web <- roles <- programs <- harness <- bench, tools, tests."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

SHARED = {"fss", "campaign", "client", "web"}
ROLES = ("dealer", "servers", "analyst", "operators")
MAY_IMPORT = {
    "fss": {"fss"},
    "campaign": {"fss", "campaign"},
    "client": {"fss", "campaign", "client"},
    "web": SHARED,
    **{role: {*SHARED, role} for role in ROLES},
    "programs": {*SHARED, *ROLES, "programs"},
    "harness": {*SHARED, *ROLES, "programs", "harness"},
    "bench": {*SHARED, *ROLES, "programs", "harness", "bench"},
    "tools": {*SHARED, *ROLES, "programs", "harness", "bench", "tools"},
}
OURS = {*MAY_IMPORT, "tests"}


def imported(source: str) -> set[str]:
    """The top-level packages that a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names.add((node.module or "").split(".")[0])
    return names


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_import_direction(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        wrong = (imported(path.read_text()) & OURS) - MAY_IMPORT[package]
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


def test_the_check_sees_imports() -> None:
    assert imported("import servers.storage.store\ndef f():\n    from dealer import share") == {"servers", "dealer"}
