"""The operators' main message: the console reads fields that it has, and an older program reads a newer server's."""

import re
from pathlib import Path

import pytest

import fss_ecdf.pages.console
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.json_messages import read
from fss_ecdf.campaign.status import Status, StatusProblem
from tests.test_next_steps import status

SCRIPTS = sorted(Path(fss_ecdf.pages.console.__file__).parent.glob("*.js"))
FIELDS = {*Status.model_fields, *StatusProblem.model_fields}


def read_by(script: str) -> set[str]:
    """The fields of a status that a script reads: `status.NAME`, `s.NAME`, and the keys of the table of states."""
    named = set(re.findall(r"\b(?:status|s)\.([a-z]\w*)", script))
    table = re.search(r"const STATES = \[(.*?)\n\];", script, re.DOTALL)
    return named | set(re.findall(r'\["[^"]*", "(\w+)"\]', table[1]) if table else ())


def test_the_operator_console_reads_fields_that_a_status_has() -> None:
    (campaign,) = (path.read_text() for path in SCRIPTS if path.name == "campaign.js")
    assert {"state", "operator_agreed", "sealed_uploads", "excluded_stored", "troubles"} <= read_by(campaign) <= FIELDS


def test_a_status_is_read_as_it_was_written() -> None:
    both = status("sealed", phase="ready", progress=1.0, sealed_uploads=50, excluded_stored=2)
    asked = both.model_copy(update={"peer": StatusProblem(problem="peer-unavailable", detail="no answer")})
    assert read(Status, asked.fields()) == asked
    assert read(Status, both.model_copy(update={"peer": both}).fields()).peer == both
    assert "on_hold" not in both.fields()


def test_a_status_of_a_newer_server_is_read_and_a_wrong_one_is_not() -> None:
    fields = status("open").fields()
    assert read(Status, {**fields, "new": 1}) == status("open")
    for name, wrong in (("state", "thawed"), ("uploads", "50"), ("waves", []), ("server", 2), ("digest", "short")):
        with pytest.raises(InvalidQuery, match=name):
            read(Status, {**fields, name: wrong})
