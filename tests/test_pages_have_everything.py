"""Every command, every option and every column of the database is on a page that somebody wrote."""

import re
from pathlib import Path

import pytest

from servers.storage.schema import META
from tools.site import reference

ROOT = Path(__file__).parents[1]
PAGES = [page.read_text().replace("\\\n", " ") for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
COMMANDS = dict(reference.parsers())
# Options that every command of a program has stand once on a page of that program.
SHARED = {"--help", "--version", "--config", "--operator-config", "--token-file", "--ca", "--on-grid"}
SHARED |= {"--wave", "--through", "--pooled", "--smoothing", "--confidence", "--interval", "--plot", "--json", "--csv"}


def has(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_and_its_options_are_on_a_page(command: str) -> None:
    pages = [text for text in PAGES if has(text, command)]
    assert pages, f"no page names {command}"
    program = [text for text in PAGES if has(text, command.split()[0])]
    for option in [word for action in COMMANDS[command]._actions for word in action.option_strings]:
        if option.startswith("--") and option != "--help":
            where = program if option in SHARED else pages
            assert any(has(text, option) for text in where), f"{option} of {command}"


def test_the_data_model_names_every_table_and_column() -> None:
    page = (ROOT / "docs" / "data-model.md").read_text()
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    assert list(sections) == [table.name for table in META.tables.values()]
    for table in META.tables.values():
        rows = re.findall(r"^\| (`.+?`) \|", sections[table.name], re.MULTILINE)
        named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
        assert sorted(named) == sorted(column.name for column in table.columns), table.name
