"""docs/how-to/data-manager.md: every mistake that it lists has the message that it promises."""

import re
import secrets

import pytest

from dealer.file_formats import MOST_BYTES
from dealer.input_rows import MOST_CLIPPED, Options, check_clipping, from_file
from fss_ecdf.campaign import missing
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidValue
from fss_ecdf.campaign.grid import LinearGrid
from tests.harness.server_pair import ROOT

PAGE = (ROOT / "docs" / "how-to" / "data-manager.md").read_text()
CELLS = re.findall(r"^\| .+? \| `(.+?)` \| (.+?) \| .+? \|$", PAGE, re.MULTILINE)
NAMED = Options(column="hba1c", stratum_column="type")
GOOD = "7.1,type 2\n" * 9
FILES = {
    "there is no column": ("hba1c,type\n" + GOOD, Options(column="HbA1c", stratum_column="type")),
    "name that of the values with --column": ("hba1c,type\n" + GOOD, Options(stratum="type 1")),
    "is not one of": ("hba1c,type\n7.1,Type 2\n", NAMED),
    "every value needs its stratum": ("hba1c,type\n" + GOOD, Options(column="hba1c")),
    "may be a decimal number or one in thousands": ("hba1c;type\n1,234;type 1\n5,678;type 2\n", NAMED),
    "this is not a text file": ("\0\1", NAMED),
}


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    grid = LinearGrid.model_validate({"kind": "linear", "from": 3.0, "to": 15.0, "step": 0.1})
    variable = {"name": "HbA1c", "unit": "%", "grid": grid}
    about = {"id": secrets.token_bytes(32), "title": "HbA1c", "question": "Which?", "epsilon": 1.0}
    return Campaign.model_validate(
        {**about, "strata": ["type 1", "type 2"], "check_keys": False, "variables": [variable]}
    )


def refusal(campaign: Campaign, text: str, options: Options) -> str:
    with pytest.raises(InvalidValue) as refused:
        check_clipping(campaign, from_file(text.encode(), options, campaign.variable).to_positions(campaign), False)
    return refused.value.detail


def test_cells_have_the_messages_of_the_page(campaign: Campaign) -> None:
    assert len(CELLS) == 6
    for cell, message in CELLS:
        assert message in refusal(campaign, f"hba1c,type\n{cell},type 1\n" + GOOD, NAMED), cell


def test_files_have_the_messages_of_the_page(campaign: Campaign) -> None:
    table = PAGE.split("These concern the whole file:")[1].split("An error message")[0]
    assert re.findall(r"^\| .+? \| (.+?) \| .+? \|$", table, re.MULTILINE)[2:] == list(FILES)
    for message, (text, options) in FILES.items():
        assert message in refusal(campaign, text, options)


def test_the_example_and_the_limits_of_the_page_are_those_of_the_program(campaign: Campaign) -> None:
    (example,) = re.findall(r"^```text\n(patient.+?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert from_file(example.encode(), NAMED, campaign.variable).values == ["6.5", "7.1"]
    listed = PAGE.split("These cells count as missing")[1].split("A file with")[0]
    assert {word.lower() for word in re.findall(r"`(.+?)`", listed)} == missing.WORDS - {""}
    assert f"more than {MOST_CLIPPED:.0%}".replace("%", " percent") in PAGE
    assert f"up to {MOST_BYTES >> 30} GiB" in PAGE
