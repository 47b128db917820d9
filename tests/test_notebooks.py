"""The notebooks in docs/examples/ run from their first to their last cell, as somebody who opens them runs them."""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.harness.server_pair import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "examples").glob("*.ipynb"))


def test_they_are_there_and_kept_without_results() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["analyst", "epsilon", "study"]
    for path in NOTEBOOKS:
        book = nbformat.reads(path.read_text(), as_version=4)  # type: ignore[no-untyped-call]
        nbformat.validate(book)
        assert not any(cell.get("outputs") for cell in book.cells)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the notebook's own machinery
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    book = nbformat.reads(path.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert any("text/html" in output.get("data", {}) or "image/png" in output.get("data", {}) for output in shown)
