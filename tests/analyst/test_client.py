"""The client, the command line and the report against two live servers."""

import asyncio
import csv
import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

from analyst import AsyncClient, Client
from analyst.cli import main
from analyst.queries import Request
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import (
    BudgetExceeded,
    DigestMismatch,
    InvalidInput,
    InvalidPeerResponse,
    InvalidQuery,
    NotAuthenticated,
    NotSealed,
    PeerUnavailable,
    UnknownCampaign,
)
from fss_ecdf.campaign.json_messages import EcdfResponse, read
from tests.analyst.helpers import Array, scored
from tests.commands import Done, call
from tests.harness.server_pair import ROOT, LivePair, name
from tests.servers.conftest import new_campaign
from tests.servers.test_answers import both_noises, true_curve

SCORES = {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01}


@pytest.fixture(scope="module")
def truth(pair: LivePair) -> tuple[Campaign, Array, Array]:
    """A sealed campaign of scores with outcomes, and what only the test knows."""
    campaign = new_campaign(grid=SCORES, strata=["no", "yes"], reserve=1.0, title="Risk <score> & outcome, 50$_$")
    scores, outcome = scored(6000, 4)
    pair.create(campaign)
    pair.upload_values(campaign, campaign.to_positions(scores, np.where(outcome, "yes", "no").tolist()).positions)
    pair.seal(campaign)
    pair.wait_ready(campaign)
    return campaign, scores, outcome


def url(pair: LivePair, campaign: Campaign, role: int = 0) -> str:
    return f"{pair.url(role)}/v1/campaigns/{name(campaign)}"


def client(pair: LivePair, campaign: Campaign, role: int = 0, **more: Any) -> Client:
    return Client(url(pair, campaign, role), pair.servers[role].analyst, pair.folder / "ca.pem", **more)


def test_a_release_is_what_the_servers_published(pair: LivePair, truth: tuple[Campaign, Array, Array]) -> None:
    campaign, scores, outcome = truth
    positions = campaign.to_positions(scores, np.where(outcome, "yes", "no").tolist()).positions
    whole = true_curve(campaign, positions) + both_noises(pair, campaign)
    for role in (0, 1):
        with client(pair, campaign, role) as ask:
            release = ask.release()
            assert release.n == 6000
            assert release.counts["no"].tolist() == whole[:101].tolist()
            assert release.counts["yes"].tolist() == (whole[128 : 128 + 101] - whole[127]).tolist()
            assert ask.release() is release


def test_every_statistic_is_near_the_truth(pair: LivePair, truth: tuple[Campaign, Array, Array]) -> None:
    """To 7 standard errors each: false alarm below 1e-9."""
    campaign, scores, outcome = truth
    with client(pair, campaign) as ask:
        points = ask.ecdf([0.1, 0.5, "0.75"], "yes")
        right = [(scores[outcome] <= t).sum() for t in (0.1, 0.5, 0.75)]
        assert (np.abs(points.counts - right) < 7 * points.standard_errors).all()
        mean = ask.mean("yes")["mean"]
        assert abs(mean.value - scores[outcome].mean()) < 7 * mean.noise_error + 0.005  # half a step of the grid
        roc = ask.roc()
        assert abs(roc.auc - roc_auc_score(outcome, scores)) < 7 * roc.auc_error
        assert abs(ask.quantile([0.5], "no").thresholds[0] - np.median(scores[~outcome])) < 0.1
        assert ask.compare("no", "yes").distance.interval("noise")[0] > 0
        assert ask.calibration().p_value > 1e-9
        assert ask.curve("yes").smoothing == "limited"
        assert ask.histogram(10, "no").counts.size == 10


def test_async_gives_the_same(pair: LivePair, truth: tuple[Campaign, Array, Array]) -> None:
    campaign, *_ = truth
    with client(pair, campaign) as ask:
        expected = [ask.quantile().to_dict(), ask.roc().to_dict(), ask.ecdf([0.5]).to_dict(), ask.budget()]

    async def run() -> list[Any]:
        async with AsyncClient(url(pair, campaign, 1), pair.servers[1].analyst, pair.folder / "ca.pem") as ask:
            quantile, roc, points = await asyncio.gather(ask.quantile(), ask.roc(), ask.ecdf([0.5]))
            return [quantile.to_dict(), roc.to_dict(), points.to_dict(), await ask.budget()]

    assert asyncio.run(run()) == expected


def test_points_smoothed_among_themselves(pair: LivePair, truth: tuple[Campaign, Array, Array]) -> None:
    campaign, *_ = truth
    with client(pair, campaign) as ask:
        raw = ask.ecdf([0.5, 0.1, 0.1, -3], "yes", smoothing="none")
        assert raw.counts[1] == raw.counts[2]
        assert raw.counts[3] == 0
        for how in ("isotonic", "l1", "l2"):
            points = ask.ecdf([0.11, 0.1, 0.12, 0.9], "yes", smoothing=how)
            assert (np.diff(points.counts[[1, 0, 2, 3]]) >= 0).all()


def test_groups_cost_the_reserve_once(pair: LivePair, truth: tuple[Campaign, Array, Array]) -> None:
    campaign, scores, outcome = truth
    ends = [0.2, 0.4, 0.6, 1.0]
    with client(pair, campaign) as ask:
        first = ask.score_groups(ends, epsilon=0.4)
        again = ask.score_groups(ends, epsilon=0.4)
        assert first.to_dict() == again.to_dict()
        assert ask.budget().reserve_left == pytest.approx(0.6)
        right = [((scores <= b) & (scores > a) & outcome).sum() for a, b in zip([-1, *ends[:-1]], ends, strict=True)]
        error = np.sqrt(first.groups.noise[0, 0])
        assert (np.abs(first.groups.table[1] - right) < 12 * error).all()
        assert first.p_value > 1e-9
        with pytest.raises(BudgetExceeded):
            ask.score_groups([0.3, 0.5, 1.0], epsilon=0.9)


def test_errors_are_clear(pair: LivePair, truth: tuple[Campaign, Array, Array], tmp_path: Path) -> None:
    campaign, *_ = truth
    address, ca = url(pair, campaign), pair.folder / "ca.pem"
    with pytest.raises(NotAuthenticated), Client(address, "wrong", ca) as ask:
        ask.curve()
    with pytest.raises(InvalidInput, match="certificate that is not trusted"), Client(address, "any") as ask:
        ask.campaign()
    with pytest.raises(InvalidInput, match="not an address like"):
        Client("http://a.example/v1/campaigns/x", "any")
    with pytest.raises(InvalidInput, match="ASCII"):
        Client(address, "t\u00f6ken", ca)
    with pytest.raises(InvalidInput, match="no such file"):
        Client(address, "any", tmp_path / "missing.pem")
    with client(pair, campaign) as ask, pytest.raises(InvalidQuery, match="at least 3 groups"):
        ask.score_groups([0.5, 1.0], epsilon=0.1)
    unknown = address[:-43] + to_base64url(bytes(32))
    with pytest.raises(UnknownCampaign), Client(unknown, "any", ca) as ask:
        ask.campaign()
    with pytest.raises(PeerUnavailable), Client("https://127.0.0.1:1/v1/campaigns/x", "any", ca) as ask:
        ask.campaign()
    with client(pair, campaign) as ask, pytest.raises(InvalidQuery, match="is not one of"):
        ask.curve("perhaps")
    open_one = new_campaign(grid=SCORES)
    pair.create(open_one)
    with client(pair, open_one) as ask, pytest.raises(NotSealed):
        ask.curve()
    with client(pair, campaign) as ask:
        ask._asking._campaign = Campaign.from_dict(
            {**campaign.model_dump(mode="json", by_alias=True), "title": "another"}
        )
        with pytest.raises(DigestMismatch):
            ask.ecdf([0.5])


def test_a_server_that_speaks_nonsense_is_named(pair: LivePair, truth: tuple[Campaign, Array, Array]) -> None:
    campaign, *_ = truth
    with client(pair, campaign) as ask:
        last = read(EcdfResponse, ask._ask(Request("GET", "/ecdf", {"params": {"at": "1.0", "stratum": "no"}})))
        for wrong in (b"", b"\x93NUMPY\x01\x00", b"{}"):
            with pytest.raises(InvalidPeerResponse, match="did not send a curve"):
                ask._asking._read_counts(wrong, last, campaign)
        short = io.BytesIO()
        np.save(short, np.zeros(5))
        with pytest.raises(InvalidPeerResponse, match="something else than a curve of 128 counts"):
            ask._asking._read_counts(short.getvalue(), last, campaign)
        other = io.BytesIO()
        np.save(other, np.arange(128))
        with pytest.raises(InvalidPeerResponse, match="its own last count"):
            ask._asking._read_counts(other.getvalue(), last, campaign)
        for wrong in (b"", b"[]", b"{}", b'{"campaign": 3}', b'{"campaign": {}}'):
            with pytest.raises(InvalidPeerResponse, match="did not send a campaign"):
                ask._asking._read_campaign(wrong)


def run(pair: LivePair, campaign: Campaign, command: str, *args: str, cwd: Path = ROOT, stdin: str = "") -> Done:
    words = [command, url(pair, campaign), "--ca", str(pair.folder / "ca.pem"), *args]
    return call(main, *words, stdin=stdin, cwd=cwd, env={"FSS_ANALYST_TOKEN": pair.servers[0].analyst})


def test_as_a_process_of_its_own(pair: LivePair, truth: tuple[Campaign, Array, Array]) -> None:
    words = [sys.executable, "-m", "analyst.cli", "quantile", url(pair, truth[0]), "--ca", str(pair.folder / "ca.pem")]
    env = {**os.environ, "FSS_ANALYST_TOKEN": pair.servers[0].analyst}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run(pair, truth[0], "quantile").stdout


COMMANDS = {
    "ecdf": ["--at", "0.1,0.5"],
    "quantile": ["--levels", "0.5,0.9", "--stratum", "yes"],
    "histogram": ["--edges", "0.2,0.5,1"],
    "summary": ["--trim", "0.2"],
    "roc": [],
    "performance": ["--threshold", "0.3"],
    "decision-curve": ["--thresholds", "0.1,0.3"],
    "calibration": ["--groups", "5"],
    "compare": ["--first", "no", "--second", "yes"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(pair: LivePair, truth: tuple[Campaign, Array, Array], command: str, tmp_path: Path) -> None:
    campaign, *_ = truth
    picture = tmp_path / "picture.png"
    text = run(pair, campaign, command, *COMMANDS[command], "--plot", str(picture))
    assert text.returncode == 0, text.stderr
    assert campaign.title in text.stdout
    with Image.open(picture) as image:
        assert image.width > 500
        assert len(set(image.convert("L").resize((60, 60)).tobytes())) > 5
    document = json.loads(run(pair, campaign, command, *COMMANDS[command], "--json").stdout)
    assert document["epsilon"] == 1.0
    assert document["n"] == 6000
    table = run(pair, campaign, command, *COMMANDS[command], "--csv").stdout.splitlines()
    assert table[0].split(",")[0] in document


def test_calibration_by_spending(pair: LivePair, truth: tuple[Campaign, Array, Array]) -> None:
    campaign, *_ = truth
    spend = ["score-groups", "--edges", "0.3,0.5,1", "--spend", "0.3", "--json"]
    before = run(pair, campaign, "budget").stdout
    assert "in reserve\nspent " in before
    for stdin, code, told in (
        ("", 64, "nobody is there to be asked: spend it with --yes"),
        ("n\n", 65, "nothing was spent"),
    ):
        done = run(pair, campaign, *spend, stdin=stdin)
        assert (done.returncode, done.stdout) == (code, "")
        assert "spend epsilon 0.3 of the" in done.stderr
        assert told in done.stderr
    assert run(pair, campaign, "budget").stdout == before
    done = run(pair, campaign, *spend, stdin="y\n")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epsilon"] == 0.3
    assert "is left" in done.stderr
    assert run(pair, campaign, "budget").stdout != before
    assert "spend epsilon" not in run(pair, campaign, *spend, "--yes").stderr


def test_show_is_the_campaign(pair: LivePair, truth: tuple[Campaign, Array, Array]) -> None:
    shown = run(pair, truth[0], "show")
    assert shown.returncode == 0, shown.stderr
    assert Campaign.from_toml(shown.stdout) == truth[0]


def test_the_report_is_one_page_that_needs_nothing_else(
    pair: LivePair, truth: tuple[Campaign, Array, Array], tmp_path: Path
) -> None:
    campaign, *_ = truth
    out = tmp_path / "report.html"
    done = run(pair, campaign, "report", "--out", str(out))
    assert done.returncode == 0, done.stderr
    page = out.read_text()
    assert "Risk &lt;score&gt; &amp; outcome, 50$_$" in page
    assert "<score>" not in page
    for word in ("epsilon = 2", "Calibration", "ROC", "Distribution: yes", "both servers working together"):
        assert word in page, word
    assert page.count("<svg") == 3 + 2 * 2 + 2 + 2 + 1
    assert "http://" not in page.replace("http://www.w3.org/", "").replace("http://purl.org/", "").replace(
        "http://creativecommons.org/", ""
    )
    assert "https://" not in page.replace("https://matplotlib.org/", "")
    for svg in page.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + svg[: svg.index("</svg>")] + "</svg>")


@pytest.mark.slow
def test_the_report_as_files_and_as_words(
    pair: LivePair, truth: tuple[Campaign, Array, Array], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign, *_ = truth
    done = run(pair, campaign, "report", "--methods", "--files", str(tmp_path / "paper"))
    assert done.returncode == 0, done.stderr
    for word in ("function secret sharing", "1-differential privacy", "6000 values", "population intervals"):
        assert word in done.stdout, word
    endings = [path.suffix for path in (tmp_path / "paper").iterdir()]
    assert endings.count(".svg") == endings.count(".png") == 12
    assert endings.count(".csv") >= 10
    assert run(pair, campaign, "report").returncode == 65


@pytest.fixture(scope="module")
def trial(pair: LivePair) -> Campaign:
    """The example of survival, uploaded and sealed."""
    about = tomllib.loads((ROOT / "docs" / "examples" / "survival.toml").read_text())
    campaign = new_campaign(**about)
    rows = list(csv.DictReader((ROOT / "docs" / "examples" / "survival.csv").read_text().splitlines()))
    pair.create(campaign)
    placed = campaign.to_positions([row["days"] for row in rows], [row["group"] for row in rows])
    assert placed.clipped == 0
    pair.upload_values(campaign, placed.positions)
    pair.seal(campaign)
    pair.wait_ready(campaign)
    return campaign


def test_survival_commands(pair: LivePair, trial: Campaign, tmp_path: Path) -> None:
    picture = tmp_path / "survival.png"
    text = run(pair, trial, "survival", "--at", "90,180", "--plot", str(picture))
    assert text.returncode == 0, text.stderr
    assert "log-rank, drug against placebo: p" in text.stdout
    with Image.open(picture) as image:
        assert image.width > 500
    columns = json.loads(run(pair, trial, "survival", "--at", "90,180", "--json").stdout)
    assert columns["time"] == [90, 180] * 2
    assert columns["population_lower"][0] < columns["survival"][0] < columns["population_upper"][0]
    summary = json.loads(run(pair, trial, "survival-summary", "--json").stdout)
    assert len(summary["statistic"]) == 9
    first = ["--first", "placebo: event", "placebo: censored", "--second", "drug: event", "drug: censored"]
    areas = json.loads(run(pair, trial, "compare-auc", *first, "--json").stdout)
    assert areas["statistic"][-1] == "difference of AUCs"
    out = tmp_path / "report.html"
    assert run(pair, trial, "report", "--out", str(out)).returncode == 0
    assert "Kaplan-Meier" in out.read_text()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--at", "abc"], 65, "invalid-value"),
        (["--stratum", "perhaps"], 65, "is not one of"),
        (["--token-file", "/nonexistent"], 64, "No such file"),
        (["--plot", "picture.txt"], 65, "picture.txt"),
    ],
)
def test_mistakes_are_one_line(
    pair: LivePair, truth: tuple[Campaign, Array, Array], args: list[str], code: int, words: str
) -> None:
    done = run(pair, truth[0], "ecdf", *args)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
