"""The documentation: every page has its place, what can be made of the code is, and every command works."""

import argparse
import json
import re
import secrets
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

import analyst
from analyst.options import Smoothing
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import problems
from servers.api.reference import operations
from tests.doc_pages import blocks, follow
from tests.harness.server_pair import ROOT, LivePair
from tools.site import record, reference
from tools.site.__main__ import broken_blocks, fetched_from_elsewhere, linked, without_fallbacks
from tools.site.kinds import DOCS, KINDS, MADE, placed, unplaced
from tools.site.signatures import signature

PAGES = [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]
EXAMPLES: dict[str, Any] = json.loads(reference.EXAMPLES.read_text())


def test_every_page_has_one_place() -> None:
    assert unplaced() == []
    listed = [page for pages in KINDS.values() for page in pages]
    assert len(listed) == len(set(listed))
    assert {"Tutorial", "How to", "Reference", "Explanation", "Gallery", "Glossary"} == set(KINDS)
    assert set(MADE) == set(reference.PAGES)
    assert all(page.relative_to(DOCS).as_posix() in placed() for page in PAGES)


def test_mentions_of_pages_become_links() -> None:
    text = "see `docs/privacy.md`, `docs/none.md`\n```sh\ncat `docs/privacy.md`\n```\n"
    made = linked(text, Path("how-to/plan.md"))
    assert made.startswith("see [Privacy](../privacy.md), `docs/none.md`")
    assert "cat `docs/privacy.md`" in made
    assert linked("`docs/privacy.md`", Path("privacy.md")) == "`docs/privacy.md`"


def test_a_block_says_who_types_it() -> None:
    assert linked("```sh alpha\nls\n```\n", Path("operations.md")) == '```sh title="alpha"\nls\n```\n'


def test_what_a_built_page_must_not_have_is_found(tmp_path: Path) -> None:
    script = tmp_path / "bundle.js"
    script.write_text('load("https://unpkg.com/x")')
    (tmp_path / "page.html").write_text('<p>```sh</p><img src="https://elsewhere.example/x.png">')
    assert len(fetched_from_elsewhere(tmp_path)) == 2
    assert broken_blocks(tmp_path) == ["page.html: a block of code is broken"]
    without_fallbacks(tmp_path)
    assert script.read_text() == 'load("left-out/x")'


def test_pages_that_are_mentioned_exist() -> None:
    for page in DOCS.rglob("*.md"):
        for name in re.findall(r"`docs/([\w/-]+\.md)`", page.read_text()):
            assert (DOCS / name).is_file(), f"{page.name} names docs/{name}"


def test_the_reference_of_command_lines_has_every_option() -> None:
    text = reference.command_lines()
    names = [name for name, _ in reference.parsers()]
    assert {"fss-server campaign seal", "fss-dealer upload", "fss-analyst roc"} <= set(names)
    for name, parser in reference.parsers():
        section = re.split(rf"^##+ {re.escape(name)}$", text, flags=re.MULTILINE)[1].split("\n```\n")[0]
        for action in parser._actions:
            assert all(option in section for option in action.option_strings), (name, action.option_strings)


def test_every_command_and_option_says_what_it_is() -> None:
    for name, parser in reference.parsers():
        assert parser.description, name
        for action in parser._actions:
            if not isinstance(action, argparse._SubParsersAction):
                assert action.help, (name, action.dest)


def test_the_other_references_are_whole() -> None:
    assert all(f"`{problem.code}`" in reference.problem_codes() for problem in problems())
    assert all(f"| `{f.alias or n}` |" in reference.campaign_fields() for n, f in Campaign.model_fields.items())
    python = reference.python()
    assert "### parse_json" not in python, "what a module imports for itself is nobody else's"
    assert all(f"### {name}" in python for name in ("Client", "Release", "upload", "Campaign", "gen", "sum_at_points"))
    rest = reference.rest()
    assert [line for line in rest.splitlines() if line.startswith("| `") and line.endswith("|  |")] == []
    assert all(f"## {reference.key_of(operation)}\n" in rest for operation in operations(reference.api()))


def test_calls_are_shown_as_their_source_has_them() -> None:
    assert signature("Client.release", analyst.Client.release).endswith("-> Release")
    assert signature("Campaign.to_positions", Campaign.to_positions).splitlines() == [
        "Campaign.to_positions(",
        "    values: Values,",
        "    strata: Strata | None = None,",
        "    *,",
        "    first_row: int = 1,",
        ") -> Positions",
    ]
    assert max(map(len, reference.python().splitlines())) <= 120
    assert all(f'"{one}"' in reference.python() for one in get_args(Smoothing))


def shape(value: Any) -> Any:
    """What an answer looks like, whatever its numbers are."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value[:1]]
    return "number" if isinstance(value, int | float) else type(value).__name__


@pytest.mark.slow
def test_examples_are_what_servers_answer(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        seen = record.record(pair, secrets.token_bytes(32))
    assert {reference.key_of(operation) for operation in operations(reference.api())} == set(seen) == set(EXAMPLES)
    for key, example in seen.items():
        assert example["request"].splitlines()[0] == EXAMPLES[key]["request"].splitlines()[0]
        assert shape(example["answer"]) == shape(EXAMPLES[key]["answer"]), key


def test_the_tutorial_shows_the_example_as_it_is() -> None:
    ((_, shown),) = blocks(DOCS / "tutorial.md", "toml")
    example = (ROOT / "docs" / "examples" / "risk-score.toml").read_text()
    assert tomllib.loads(shown) == tomllib.loads(example)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_following_a_page_works(page: Path, tmp_path: Path) -> None:
    done = follow(page, tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    if page.stem == "audit":
        assert "honest" in done.stdout
    if page.stem == "check-page":
        assert "the same, byte for byte: True" in done.stdout
    if page.stem == "tutorial":
        assert {"curve.png", "roc.png", "decision.png", "report.html"} <= {path.name for path in tmp_path.iterdir()}
