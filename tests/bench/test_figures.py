"""The paper's figures run on small sizes, say what is missing, and their parts are right."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from bench import docs, index
from bench.figures import hosmer
from bench.figures import run as figures
from bench.figures.data import SOURCES
from bench.figures.figure import Claim, Options, read_csv, write_csv
from bench.figures.roc import area_between
from tests.analyst.helpers import two_strata

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SMALL = ["--runs", "2", "--levels", "8"]


def test_figures_write_pictures_tables_and_claims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["smoothing-epsilon", "smoothing-lambda", "inverse", "runtime"]
    out = tmp_path / "out"
    assert figures.main([*names, *SMALL, "--out", str(out), "--json", str(tmp_path / "figures.json")]) == 0
    for name in names:
        assert (out / f"{name}.png").stat().st_size > 10_000
        assert len(list(csv.DictReader((out / f"{name}.csv").read_text().splitlines()))) > 5
    claims = json.loads((tmp_path / "figures.json").read_text())["claims"]
    assert {claim["figure"] for claim in claims} == set(names)
    assert "2-norm smoothing reduces the error" in capsys.readouterr().out
    page = index.page(tmp_path)
    assert "out/inverse.png" in page
    assert "the quadratic program" in page


def test_a_missing_data_set_is_said_and_the_rest_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert figures.main(["roc-heart", "inverse", *SMALL, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "roc-heart: left out. Heart disease: no --data-dir" in said
    assert (tmp_path / "inverse.png").exists()
    (tmp_path / "framingham.csv").write_text("age,TenYearCHD\n50,1\n")
    figures.main(["roc-heart", *SMALL, "--data-dir", str(tmp_path), "--out", str(tmp_path)])
    assert "framingham.csv is another version" in capsys.readouterr().out


def test_the_area_between_a_curve_and_itself_is_nothing() -> None:
    roc = two_strata(3000)[0].roc()
    other = two_strata(3000, seed=5)[0].roc()
    assert area_between(roc, roc) == 0
    assert area_between(roc, other) >= abs(roc.auc - other.auc) - 1e-3


def test_tables_read_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [{"method": "paper-tree, 2-norm", "epsilon": 0.05, "ratio": 1 / 3}]
    write_csv(tmp_path / "x.csv", rows)
    assert read_csv(tmp_path / "x.csv") == rows


def test_checksums_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert all(source.sha256 in page and f"`{source.file}`" in page for source in SOURCES.values())


def test_claims_can_fail() -> None:
    """The first claim is about numbers, not about itself."""
    figure = figures.FIGURES["smoothing-epsilon"]
    rows = [
        {"method": f"{name}, {how}", "epsilon": e, "ratio": ratio, "raw_mse": 1.0}
        for name in ("paper-tree", "slice-tree")
        for how in ("1-norm", "2-norm", "isotonic")
        for e, ratio in ((0.1, 3.0), (1.0, 2.0), (20.0, 1.5))
    ]
    claims: list[Claim] = figure.claims(rows)
    assert not claims[0].holds
    assert np.all([isinstance(claim.holds, bool) for claim in claims])


def test_unknown_figures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        figures.main(["nonsense", "--out", str(tmp_path)])
    assert Options(tmp_path, 1, 1, 8, None).workers >= 1


def test_a_page_keeps_the_figures_that_were_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "images").mkdir()
    page = tmp_path / "benchmarks.md"
    kept = "- inverse: `an old command`, commit 1\n\n| inverse | they say | yes | 7 |\n"
    page.write_text(f"before\n{figures.START}\n{kept}\n{figures.END}\nafter\n")
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    arguments = ["smoothing-lambda", *SMALL, "--out", str(tmp_path / "out"), "--docs"]
    assert figures.main(arguments) == 0
    text = page.read_text()
    assert "- inverse: `an old command`, commit 1\n" in text
    assert "| inverse | they say | yes | 7 |\n" in text
    assert text.count("| smoothing-lambda |") == 2
    assert "- smoothing-lambda: `python -m bench" in text
    assert text.count("](images/") == 2


def test_beating_means_two_paired_standard_errors_at_every_epsilon() -> None:
    rng = np.random.default_rng(1)
    theirs, ours = rng.exponential(2.0, (6, 400)), rng.exponential(1.0, (6, 400))
    ours[0] = theirs[0] + np.tile([0.1, -0.1], 200)

    def rows(first: int) -> list[dict[str, object]]:
        return [
            {"method": method, "epsilon": e, "seed": seed, "relative": float(table[i + (i < first), seed])}
            for method, table in ((hosmer.THEIRS_OFF, theirs), (hosmer.OURS_OFF, ours))
            for i, e in enumerate(hosmer.EPSILONS)
            for seed in range(400)
        ]

    def holds(rows_of_both: list[dict[str, object]]) -> Claim:
        others = [{**row, "method": m} for row in rows_of_both[:2400] for m in (hosmer.THEIRS, hosmer.OURS)]
        return hosmer.gain("bank", [*rows_of_both, *others], hosmer.THEIRS_OFF)

    assert not holds(rows(0)).holds
    assert "a tie (below two standard errors) at 0.1;" in holds(rows(0)).measured
    assert holds(rows(1)).holds
