"""What docs/ says follows from the code where it can."""

import inspect
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from bench.docs import END, MEASURED, START, Measured, problem_table, wrapped
from dealer import receipt
from fss import keys
from fss_ecdf.campaign import binary_messages, campaign, sealed_uploads
from fss_ecdf.campaign.errors import problems
from fss_ecdf.cli.server import main as server
from servers.api import action_log, analysts, operators, parties, peers, public, sites
from servers.maintenance import backup
from servers.release import sealed_releases, statement
from servers.settings import Settings
from servers.storage import entries, migrate
from tests.commands import call
from tools.site import files, reference

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def test_the_table_of_problems_is_current() -> None:
    text = (DOCS / "protocol.md").read_text()
    assert text.split(START)[1].split(END)[0].strip() == problem_table()


@pytest.mark.parametrize("measured", MEASURED, ids=lambda measured: measured.run)
def test_a_table_of_figures_is_that_of_the_run_beside_it(measured: Measured) -> None:
    text = (DOCS / measured.page).read_text()
    assert text.split(measured.start)[1].split(measured.end)[0].strip() == wrapped(measured.table())


def test_every_public_route_is_described() -> None:
    text = (DOCS / "protocol.md").read_text()
    for route in [
        route for room in (public, operators, sites, action_log, parties, analysts) for route in room.router.routes
    ]:
        path = str(getattr(route, "path", "")).replace("{cid}", "{id}")
        assert path in text, path


def settings(section: type[BaseModel], under: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        inner = [one for one in (field.annotation, *get_args(field.annotation)) if inspect.isclass(one)]
        below = [one for one in inner if issubclass(one, BaseModel)]
        yield from settings(below[0], f"{name}.") if below else [under + name]


def test_the_table_of_settings_is_whole() -> None:
    """A row names a section once: `limits.body_bytes`, `receive_timeout_s`."""
    table = (DOCS / "operations.md").read_text().split("| setting |")[1].split("\n\n")[0]
    found = set()
    for row in re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE):
        names = re.findall(r"`([\w.]+)`", row)
        section = names[0].rpartition(".")[0] if names else ""
        found |= {name if "." in name or not section else f"{section}.{name}" for name in names}
    assert found == set(settings(Settings))


def test_settings_of_many_processes_are_read(tmp_path: Path) -> None:
    """Those of docs/scale.md, in a file that init wrote."""
    call(server, "init", str(tmp_path / "fss"), "--server", "0", "--peer-url", "https://other.example:8443")
    (block,) = re.findall(r"^    database = .*?(?=^\S)", (DOCS / "scale.md").read_text(), re.DOTALL | re.MULTILINE)
    made = tomllib.loads((tmp_path / "fss" / "server.toml").read_text()) | tomllib.loads(textwrap.dedent(block))
    made["tokens"] |= {"peer": "0" * 64, "peer_signing_key": "A" * 43}
    read = Settings.model_validate(made)
    assert read.cluster is not None
    assert read.database_url.startswith("postgresql://")


def test_metrics_are_named() -> None:
    text = (DOCS / "operations.md").read_text()
    for name in re.findall(r'"(fss_\w+)"', (ROOT / "servers" / "metrics.py").read_text()):
        assert f"`{name}" in text, name


def test_peers_routes_are_named() -> None:
    text = (DOCS / "protocol.md").read_text()
    below = text.split("| `/v1/peer/campaigns/{id}/...` | peer |")[1].split("\n")[0]
    for path in [str(getattr(route, "path", "")).replace("{cid}", "{id}") for route in peers.router.routes]:
        last = path.removeprefix("/v1/peer/campaigns/{id}").strip("/")
        assert path in text or last in re.findall(r"[\w-]+", below), path


PROGRAMS = dict(reference.parsers())


def options(command: str) -> set[str]:
    """Of a command and of those above it."""
    words = command.split()
    above = [PROGRAMS[" ".join(words[:count])] for count in range(1, len(words) + 1)]
    return {option for parser in above for action in parser._actions for option in action.option_strings}


def test_commands_and_options_named_anywhere_exist() -> None:
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        text = page.read_text().replace("\\\n", "")
        for line in re.findall(r"(?<![\w/])(fss-(?:server|dealer|analyst)(?![\w.:])[^`\n#|;]*)", text):
            words = re.findall(r"\S+", line)
            command, rest = words[0], words[1:]
            while rest and (f"{command} {rest[0]}" in PROGRAMS or rest[0].startswith("--operator-config")):
                command, rest = (command, rest[2:]) if rest[0].startswith("--") else (f"{command} {rest[0]}", rest[1:])
            named = set(re.findall(r"(?<!\S)(--[a-z][a-z-]+)", " ".join(rest)))
            assert named <= options(command), f"{page.name}: {line}"


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


MADE_BY_PROGRAMS = ("benchmarks.md", "performance.md")  # their tables of figures are as wide as the figures


def test_pages_are_wrapped_and_table_cells_are_short() -> None:
    """A cell is a fact: what needs sentences stands below the table."""
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        longest = 300 if page.name in MADE_BY_PROGRAMS else 160
        for number, line in enumerate(page.read_text().splitlines(), start=1):
            where = f"{page.name}, line {number}"
            if line.startswith("|"):
                assert all(len(cell.strip()) <= longest for cell in line.split("|")), where
            else:
                assert len(line) <= 120 or line.startswith("!["), where


def test_pictures_exist_and_are_small() -> None:
    named = re.findall(r"!\[.+?\]\((images/.+?)\)", (DOCS / "benchmarks.md").read_text())
    assert named
    for name in named:
        assert 0 < (DOCS / name).stat().st_size < 100_000, name


def test_the_numbers_of_formats_are_those_of_the_code() -> None:
    text = (DOCS / "compatibility.md").read_text()
    (table,) = re.findall(r"^\| format \|.*?(?=\n\n)", text, re.DOTALL | re.MULTILINE)
    rows = dict(re.findall(r"^\| (.+?) \| ([\d, ]+) \|", table, re.MULTILINE))
    contexts = {
        "campaign and its digest": [campaign._DIGEST_CONTEXT],
        "encryption of uploads (HPKE context)": [sealed_uploads._CONTEXT.splitlines()[0]],
        "set, release, statement": [entries.SET_CONTEXT, sealed_releases._SET, statement._STATEMENT],
        "backup": [backup.FORMAT.encode()],
    }
    numbers = {name: ", ".join(_last_number(one) for one in found) for name, found in contexts.items()}
    numbers |= {"key": str(keys.VERSION), "upload envelope": str(binary_messages.UPLOAD_VERSION)}
    numbers |= {"noisy shares": str(binary_messages.VERSION), "receipt": str(receipt.VERSION)}
    assert numbers.items() <= rows.items()
    assert rows["schema of the database"] == migrate.newest()
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", text.split("## Summary")[1].split("## The two")[0]))
    assert named <= {kind.code for kind in problems()}


def _last_number(context: bytes) -> str:
    return context.decode().split()[-1]
