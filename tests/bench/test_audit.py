"""An audit that could not look is not an audit that found nothing."""

import pytest

from bench.audit import report

pytestmark = pytest.mark.slow

CLEAN = {"name": "a", "version": "1", "vulns": []}
UNKNOWN = {"name": "b", "skip_reason": "not found"}
BAD = {"name": "c", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}


def test_reports() -> None:
    assert report([CLEAN]) == ("1 packages, no known vulnerability", 0)
    text, code = report([CLEAN, UNKNOWN])
    assert (code, "1 of 2 packages could not be looked up (b" in text) == (2, True)
    text, code = report([CLEAN, UNKNOWN, BAD])
    assert (code, text.splitlines()[0]) == (1, "c 2: CVE-1, fixed in 3")
