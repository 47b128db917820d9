"""What docs/ says follows from the code where it can."""

import re
from pathlib import Path

from bench.docs import END, SPEED_END, SPEED_START, START, problem_table, speed_table, wrapped
from servers.api import actions, analysts, operators, parties, public, sites
from tools.site import files

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def test_the_table_of_problems_is_current() -> None:
    text = (DOCS / "protocol.md").read_text()
    assert text.split(START)[1].split(END)[0].strip() == problem_table()


def test_the_table_of_speeds_is_that_of_the_run_beside_it() -> None:
    text = (DOCS / "performance.md").read_text()
    assert text.split(SPEED_START)[1].split(SPEED_END)[0].strip() == wrapped(speed_table())


def test_every_public_route_is_described() -> None:
    text = (DOCS / "protocol.md").read_text()
    for route in [
        route for room in (public, operators, sites, actions, parties, analysts) for route in room.router.routes
    ]:
        path = str(getattr(route, "path", "")).replace("{cid}", "{id}")
        assert path in text, path


def test_settings_named_in_operations_exist() -> None:
    from servers.settings import Limits, Settings

    text = (DOCS / "operations.md").read_text()
    for name in re.findall(r"^\| `limits\.(.+?) \|", text, re.MULTILINE):
        for part in re.findall(r"\w+", name):
            assert part in Limits.model_fields, part
    for name in ("role", "listen", "data", "database", "workers", "curve_bits"):
        assert name in Settings.model_fields


def test_files_and_functions_named_in_the_architecture_exist() -> None:
    text = (DOCS / "architecture.md").read_text()
    rooms = [ROOT / name for name in (*files.PACKAGES, "deploy", "tests")]
    there = [*rooms, *(path for room in rooms for path in room.rglob("*"))]
    for name in set(re.findall(r"`([\w./]+(?:\.(?:py|js|html|h)|/))`", text)):
        assert any(f"/{path.relative_to(ROOT)}".endswith(f"/{name.rstrip('/')}") for path in there), name
    code = "\n".join(path.read_text() for path in there if path.suffix == ".py")
    for name in set(re.findall(r"`(?:\w+\.)?(?!py`)(\w+)`", text.split("## One value")[1].split("## Words")[0])):
        assert re.search(rf"\b(?:def|class) {name}\b", code), name


def test_every_file_says_what_it_is_for() -> None:
    for path in [path for package in files.PACKAGES for path in files.files(package)]:
        assert 10 < len(files.about(path)) < 250, path


def test_pages_are_wrapped_and_table_cells_are_short() -> None:
    for page in [*ROOT.glob("*.md"), *DOCS.glob("*.md")]:
        for number, line in enumerate(page.read_text().splitlines(), start=1):
            where = f"{page.name}, line {number}"
            if line.startswith("|"):
                assert all(len(cell.strip()) <= 300 for cell in line.split("|")), where
            else:
                assert len(line) <= 120 or line.startswith("!["), where


def test_pictures_exist_and_are_small() -> None:
    named = re.findall(r"!\[.+?\]\((images/.+?)\)", (DOCS / "benchmarks.md").read_text())
    assert named
    for name in named:
        assert 0 < (DOCS / name).stat().st_size < 100_000, name
