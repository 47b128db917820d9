"""One place for each thing that servers, parties and analysts must agree on; the product's source has no other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = ("analyst", "dealer", "fss", "fss_ecdf", "servers")
POSITION = r"[a-z_)\]] << [\w.]*(?:grid\.bits|index_bits)"  # a stratum, not a number, so not a size
RELEASE_NAME = r"""f"(?:wave|pooled|\{[\w.]*kind\}) \{[^}"]*\}"|startswith\("(?:wave|pooled) """
ONLY_PLACES = {
    "positions": (
        POSITION,
        "fss_ecdf/campaign/campaign.py",
        "start = campaign.stratum(name) << campaign.variable.index_bits",
    ),
    "release names": (RELEASE_NAME, "fss_ecdf/campaign/release.py", 'return f"pooled {pooled}"'),
    "schemes": (r"\bd[cp]f if\b|else d[cp]f\b", None, 'scheme = dcf if campaign.variable.scheme == "dcf" else dpf'),
    "frozen objects": (r"__dict__(?:\.update|\[)|object\.__setattr__", None, "seen.__dict__.update(noise=noise)"),
}


@pytest.mark.parametrize("what", ONLY_PLACES)
def test_no_other_file_does_it_again(what: str) -> None:
    pattern, place, example = ONLY_PLACES[what]
    assert re.search(pattern, example)  # what was written in several files before
    files = [path for package in PRODUCT for path in (ROOT / package).rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in files if re.search(pattern, path.read_text())}
    assert found == ({place} if place else set())
