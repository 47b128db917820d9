"""The glossary is the vocabulary: public names use its words and none of the words that it replaces."""

import re
from collections.abc import Iterator
from pathlib import Path

import analyst
import dealer
import fss
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import problems
from servers.api.app import ROUTES
from servers.settings import Settings
from tools.site import reference

GLOSSARY = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text()
ROWS = re.findall(r"^\| (.+?) \| (.+?) \| ?(.*?) ?\|$", GLOSSARY, re.MULTILINE)
# The steps of an operator that have a word of their own.
STEPS = {"seal", "unfreeze", "discard", "pause", "resume", "revoke"}


def terms() -> set[str]:
    return {word.strip() for row in ROWS for word in row[0].split(",")}


def replaced() -> set[str]:
    """Single words of the right column that are no terms themselves."""
    return {word.strip() for row in ROWS for word in row[2].split(",") if word.strip().isalpha()} - terms() - {"not"}


def public_names() -> Iterator[str]:
    for name, parser in reference.parsers():
        yield name
        yield from (option for action in parser._actions for option in action.option_strings)
    yield from (kind.code for kind in problems())
    yield from (name for module in (analyst, dealer, fss) for name in module.__all__)
    yield from (*Campaign.model_fields, *Settings.model_fields)
    yield from (str(getattr(route, "path", "")) for room in ROUTES for route in room.router.routes)


def parts(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+", name)}


def test_the_glossary_can_be_read() -> None:
    assert {"campaign", "person", "party", "server", "unmatched", "release", "query"} <= terms()
    assert {"orphan", "pledge", "retract", "role"} <= replaced()
    assert all(1 < len(meaning) <= 160 for _, meaning, _ in ROWS if meaning != "---")
    assert len(terms()) == sum(len(row[0].split(",")) for row in ROWS if row[0] not in ("word", "---")) + 2, "twice"


def test_public_names_avoid_the_words_that_were_replaced() -> None:
    found = {name: sorted(parts(name) & replaced()) for name in public_names()}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_steps_of_operators_are_terms() -> None:
    commands = {part for name, _ in reference.parsers() if "campaign" in name for part in parts(name)}
    assert commands & terms() >= STEPS
