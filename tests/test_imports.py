"""Imports point one way, between packages and between the rooms of `servers/`."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# From the bottom up. A layer may import itself and what stands above it in this list.
LAYERS = (
    ("fss",),
    ("fss_ecdf.campaign",),
    ("fss_ecdf.cli.common",),
    ("fss_ecdf.net",),
    ("fss_ecdf.pages",),
    ("dealer", "servers", "analyst", "fss_ecdf.operators"),  # the roles never import each other
    ("fss_ecdf.cli",),
    ("fss_ecdf.demo",),
    ("tests.harness",),
    ("bench",),
    ("tools",),
    ("tests",),
)
# The same inside a package. What is not named here stands at the top: it joins the rooms.
SERVERS = (
    ("settings", "log"),
    ("metrics",),
    ("storage",),
    ("rollback",),
    ("peer",),
    ("hpke_keys", "compute"),
    ("release",),
    ("audit", "lifecycle"),
    ("exposition", "certificates", "api.limits"),
    ("server",),
    ("api",),
    ("run",),
    ("maintenance",),
    ("cli",),
)


def imported(source: str) -> set[str]:
    """The modules that a module imports, anywhere in it; of `from a import b` both `a` and `a.b`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def rank(module: str, layers: tuple[tuple[str, ...], ...]) -> tuple[int, str] | None:
    """The layer of a module, and the longest name in it that the module belongs to."""
    found = [
        (len(name), number, name)
        for number, layer in enumerate(layers)
        for name in layer
        if module == name or module.startswith(f"{name}.")
    ]
    if not found:
        return None
    _, number, name = max(found)
    return number, name


def wrong_imports(package: str, layers: tuple[tuple[str, ...], ...], prefix: str = "") -> list[str]:
    """Imports inside `package` that point up, or sideways to another name of the same layer."""
    wrong = []
    for path in sorted((ROOT / package).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        mine = rank(module.removeprefix(prefix), layers)
        if mine is None:
            continue
        for name in sorted(imported(path.read_text())):
            if not name.startswith(prefix):
                continue
            other = rank(name.removeprefix(prefix), layers)
            if other is not None and other[1] != mine[1] and other[0] >= mine[0]:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    return wrong


@pytest.mark.parametrize("package", ["fss", "fss_ecdf", "dealer", "servers", "analyst", "bench", "tools"])
def test_packages_import_what_stands_below_them(package: str) -> None:
    assert wrong_imports(package, LAYERS) == []


def test_rooms_of_the_servers_have_an_order() -> None:
    assert wrong_imports("servers", SERVERS, "servers.") == []


def test_every_part_of_the_servers_has_its_place() -> None:
    parts = {path.stem for path in (ROOT / "servers").iterdir() if path.suffix in ("", ".py")}
    placed = {name.split(".")[0] for layer in SERVERS for name in layer}
    assert parts - {"__init__", "__pycache__"} == placed


def test_the_check_sees_imports() -> None:
    found = imported("import servers.storage.store\ndef f():\n    from dealer import make_keys")
    assert found == {"servers.storage.store", "dealer.make_keys"}
    assert rank("servers.storage.store", LAYERS) == (5, "servers")
    assert rank("api.app", SERVERS) == (10, "api")
