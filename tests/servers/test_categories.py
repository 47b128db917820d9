"""Categories from a party's file to proportions: two live servers, the flat mechanism, missing values."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyst import Client
from analyst.cli import main as analyst
from dealer.cli import main as dealer
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import InvalidCampaign, InvalidQuery
from fss_ecdf.pages.party_page import party_page
from tests.commands import Done, call
from tests.harness.server_pair import LivePair
from tests.servers.conftest import new_campaign
from tests.servers.test_answers import both_noises

SMOKER = {"name": "smoker", "categories": ["never", "former", "current"], "missing": True}
ARMS = ["control", "treated"]
TRUE = {"control": [300, 120, 60, 20], "treated": [150, 200, 120, 30]}  # never, former, current, missing
WORDS = ["never", "former", "current", "NA"]


def send(pair: LivePair, campaign: Campaign, path: Path, *more: str) -> Done:
    urls = [f"{pair.url(server)}/v1/campaigns/{to_base64url(campaign.id)}" for server in (0, 1)]
    words = ["upload", "--campaign", *urls, "--file", str(path), "--column", "smoker", "--stratum-column", "arm", *more]
    words += ["--ca", str(pair.folder / "ca.pem"), "--digest", to_base64url(campaign.digest)]
    return call(dealer, *words, env={"FSS_UPLOAD_TOKEN": pair.upload_tokens[campaign.id]})


def ask(pair: LivePair, campaign: Campaign, *words: str) -> Done:
    url = f"{pair.url(1)}/v1/campaigns/{to_base64url(campaign.id)}"
    environment = {"FSS_ANALYST_TOKEN": (pair.folder / "server1" / "analyst.token").read_text().strip()}
    return call(analyst, words[0], url, *words[1:], "--ca", str(pair.folder / "ca.pem"), env=environment)


@pytest.fixture(scope="module")
def study(pair: LivePair, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """Sealed, from a file with the names of categories."""
    campaign = new_campaign(strata=ARMS, check_keys=True, **SMOKER)
    pair.create(campaign)
    folder = tmp_path_factory.mktemp("categories")
    rows = [f"{word},{arm}" for arm in ARMS for word, count in zip(WORDS, TRUE[arm], strict=True) for _ in range(count)]
    (folder / "patients.csv").write_text("\n".join(["smoker,arm", *rows]) + "\n")
    done = send(pair, campaign, folder / "patients.csv", "--yes", "--receipt", str(folder / "receipt"))
    assert done.returncode == 0, done.stderr
    assert "3 categories; missing values are counted, 2 strata" in done.stdout
    assert "values    1000, of which 50 missing" in done.stdout
    pair.seal(campaign)
    pair.wait_ready(campaign)
    return campaign


def noisy(pair: LivePair, campaign: Campaign) -> np.ndarray[Any, Any]:
    """The true counts with the noise of both servers, which only the test knows; no noise is on unused positions."""
    noise = np.diff(both_noises(pair, campaign), prepend=0)
    assert noise.sum() == 0
    return np.array([TRUE[arm] for arm in ARMS]) + noise.reshape(len(ARMS), -1)[:, :4]


def test_counts_are_the_true_ones_with_the_noise_of_both_servers(pair: LivePair, study: Campaign) -> None:
    for number, arm in enumerate(ARMS):
        with pair.analyst(number) as client:
            path = f"/v1/campaigns/{to_base64url(study.id)}/counts"
            found = client.get(path, params={"stratum": arm}).json()
            assert found["categories"] == ["never", "former", "current", "missing"]
            assert (found["mechanism"], found["n"]) == ("flat", 1000)
            assert found["counts"] == noisy(pair, study)[number].tolist()
            assert 2 < found["standard_errors"][0] < 4
            refused = client.get(path.replace("/counts", "/curve"))
            assert (refused.status_code, "has categories, not numbers" in refused.json()["detail"]) == (400, True)


def test_the_command_line_prints_proportions_and_a_test(pair: LivePair, study: Campaign, tmp_path: Path) -> None:
    done = ask(pair, study, "categories", "--json", "--plot", str(tmp_path / "bars.svg"))
    assert done.returncode == 0, done.stderr
    table, counts = json.loads(done.stdout), noisy(pair, study)
    assert table["category"] == ["never", "former", "current", "missing"] * 2
    assert table["count"] == counts.ravel().tolist()
    expected = (counts / counts.sum(axis=1, keepdims=True)).ravel()
    assert table["proportion"] == pytest.approx(expected.tolist())
    for low, value, high in zip(table["noise_lower"], expected, table["noise_upper"], strict=True):
        assert low <= value <= high
    assert (tmp_path / "bars.svg").stat().st_size > 1000
    done = ask(pair, study, "compare-categories", "--json", "--plot", str(tmp_path / "compared.png"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "compared.png").exists()
    told = json.loads(done.stdout)
    assert told["degrees_of_freedom"] == 3
    assert told["p_value"] < 1e-6
    done = ask(pair, study, "quantile")
    assert done.returncode != 0
    assert "quantile: it needs a grid" in done.stderr
    page = tmp_path / "report.html"
    assert ask(pair, study, "report", "--out", str(page)).returncode == 0
    assert "Same proportions in all strata: p &lt; 0.0001" in page.read_text()


def test_an_unknown_category_is_named_with_its_row(pair: LivePair, tmp_path: Path) -> None:
    campaign = new_campaign(strata=ARMS, **SMOKER)
    pair.create(campaign)
    (tmp_path / "wrong.csv").write_text("smoker,arm\nnever,control\nFormer,treated\n")
    done = send(pair, campaign, tmp_path / "wrong.csv", "--dry-run")
    assert done.returncode == 65
    assert "row 3: 'Former' is not one of 'never', 'former', 'current', 'missing'" in done.stderr


def test_a_curve_is_of_the_values_that_are_not_missing(pair: LivePair) -> None:
    campaign = new_campaign(missing=True, epsilon=20.0, grid={"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.25})
    pair.create(campaign)
    values = [0.25] * 100 + [0.75] * 200 + [None] * 60
    pair.upload_values(campaign, campaign.to_positions(values).positions)
    pair.seal(campaign)
    pair.wait_ready(campaign)
    token = (pair.folder / "server0" / "analyst.token").read_text().strip()
    url = f"{pair.url(0)}/v1/campaigns/{to_base64url(campaign.id)}"
    with Client(url, token, pair.folder / "ca.pem") as client:
        table = client.categories().columns()
        assert list(table["category"]) == ["not missing", "missing"]
        assert list(table["count"]) == pytest.approx([300, 60], abs=6)  # the noise of a count at epsilon 20 is below 1
        assert client.release().totals["all"] == pytest.approx(300, abs=6)
        assert client.quantile([0.5]).thresholds == [0.75]
        assert client.ecdf([0.25]).fractions[0] == pytest.approx(1 / 3, abs=0.03)


def test_what_has_no_categories_says_so(pair: LivePair) -> None:
    with pytest.raises(InvalidQuery, match="categories, or missing = true"):
        release_of(new_campaign()).categories()
    with pytest.raises(InvalidCampaign, match="parties use fss-dealer"):
        party_page(new_campaign(**SMOKER), [pair.url(0), pair.url(1)])


def release_of(campaign: Campaign) -> Any:
    from analyst import Release

    return Release.from_curve(campaign, 0, np.zeros(1 << campaign.bits))
