"""docs/campaigns.md, `campaign draft` and `campaign preview`: every field and grid, and what a campaign is good for."""

import re
from pathlib import Path

import numpy as np
import pytest

from analyst.plots import curves
from analyst.release import Release
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.campaign.noise.expected_errors import campaign_errors
from fss_ecdf.campaign.variable import Variable
from fss_ecdf.campaign.waves import Waves
from fss_ecdf.cli.server import main
from fss_ecdf.cli.supported import supported
from tests.commands import Done, call
from tests.harness.server_pair import ROOT, LivePair
from tests.servers.conftest import new_campaign

PAGE = (ROOT / "docs" / "campaigns.md").read_text()
EXAMPLES = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def run(*args: str, stdin: str = "") -> Done:
    return call(main, "campaign", *args, stdin=stdin)


@pytest.mark.slow
@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.split('"')[1])
def test_every_example_can_be_created(pair: LivePair, tmp_path: Path, text: str) -> None:
    (tmp_path / "study.toml").write_text(text)
    invited = ["--invitations", "2"] if "invited" in text else []
    operator = ["--operator-config", str(pair.folder / "operator.toml")]
    done = run(*operator, "create", str(tmp_path / "study.toml"), *invited)
    assert done.returncode == 0, done.stderr
    assert ("point by point" in done.stdout) == ("Invoices" in text)
    checked = run("preview", str(tmp_path / "study.toml"))
    assert checked.returncode == 0, checked.stderr
    assert "this is a valid campaign" in checked.stdout


def test_every_field_and_every_grid_is_on_the_page() -> None:
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| `.*?\|", PAGE, re.MULTILINE))))
    of_variables = {field.alias or name for name, field in Variable.model_fields.items()}
    assert named == set(Campaign.model_fields) | of_variables | set(Waves.model_fields)
    campaigns = [Campaign.from_toml(text, id=bytes(32)) for text in EXAMPLES]
    assert {campaign.variable.own_grid.kind for campaign in campaigns if campaign.variable.own_grid} == {
        "linear",
        "logarithmic",
        "explicit",
    }
    used = {field for made in campaigns for field in (*made.model_fields_set, *made.variable.model_fields_set)}
    assert used >= {
        "name",
        "unit",
        "strata",
        "kind",
        "reserve",
        "opens",
        "closes",
        "admission",
        "max_values_per_person",
    }


ANSWERS = "\n".join(
    [
        "",
        "HbA1c",
        "What was it?",
        "HbA1c",
        "",
        "%",
        "",
        "much",
        "0,5",
        "no, yes",
        "",
        "float",
        "3",
        "15",
        "0.7",
        "",
        "",
        "3",
        "15",
        "0,1",
    ]
)


def test_new_asks_until_it_is_a_campaign(tmp_path: Path) -> None:
    """An empty title, an epsilon that is no number, a grid that does not end on a step: each is asked for again."""
    path = tmp_path / "study.toml"
    done = run("draft", str(path), stdin=ANSWERS + "\n")
    assert done.returncode == 0, done.stderr
    for told in ("something has to stand here", "'much' is not a number", "to must be from plus a positive whole"):
        assert told in done.stderr
    campaign = Campaign.from_toml(path.read_text(), id=bytes(32))
    assert (campaign.title, campaign.epsilon, campaign.strata, campaign.min_uploads) == (
        "HbA1c",
        0.5,
        ("no", "yes"),
        100,
    )
    assert (campaign.variable.name, campaign.variable.unit, campaign.variable.size) == ("HbA1c", "%", 121)
    assert f"fss-server campaign preview {path}" in done.stdout
    again = run("draft", str(path))
    assert (again.returncode, "never overwritten" in again.stderr) == (64, True)
    nobody = run("draft", str(tmp_path / "other.toml"))
    assert nobody.returncode == 64
    assert "nobody is there to be asked: write the file by hand, docs/campaigns.md has examples" in nobody.stderr
    assert not (tmp_path / "other.toml").exists()


@pytest.mark.parametrize(("kind", "ends"), [("integer", ("0", "120")), ("date", ("2026-01-01", "2026-12-31"))])
def test_new_for_counts_and_dates(tmp_path: Path, kind: str, ends: tuple[str, str]) -> None:
    answers = ["t", "q", "value", "", "", "", "", "", "50", kind, *ends]
    done = run("draft", str(tmp_path / "study.toml"), stdin="\n".join(answers) + "\n")
    assert done.returncode == 0, done.stderr
    campaign = Campaign.from_toml((tmp_path / "study.toml").read_text(), id=bytes(32))
    assert (campaign.variable.grid.values, campaign.min_uploads, campaign.strata) == (kind, 50, ("all",))


def test_new_for_categories(tmp_path: Path) -> None:
    answers = ["t", "q", "smoker", "never, former, current", "maybe", "yes", "", "", "50"]
    done = run("draft", str(tmp_path / "study.toml"), stdin="\n".join(answers) + "\n")
    assert done.returncode == 0, done.stderr
    variable = Campaign.from_toml((tmp_path / "study.toml").read_text(), id=bytes(32)).variable
    assert variable.cells == ("never", "former", "current", "missing")
    assert (variable.mechanism, variable.scheme) == ("flat", "dpf")
    shown = run("preview", str(tmp_path / "study.toml"), "--n", "1000")
    assert shown.returncode == 0, shown.stderr
    for told in ("smoker: 3 categories; missing values are counted", "Categories                       yes", "0.2"):
        assert told in shown.stdout


def test_check_says_what_cannot_be_asked_and_how_to_change_it(tmp_path: Path) -> None:
    (tmp_path / "big.toml").write_text(EXAMPLES[-1])
    done = run("preview", str(tmp_path / "big.toml"), "--n", "1000", "100000")
    assert done.returncode == 0, done.stderr
    for told in (
        "amount (EUR): 100000001 thresholds from 0 to 1000000",
        "Quantiles                        yes, by asking points: at most",
        "2^27 positions are more than 2^20; take a step of at least 1, or fewer strata",
        "Comparison                       no: it needs two strata",
        "bytes to each server for one value",
        "for a question of 14 points",
    ):
        assert told in done.stdout, told
    wrong = run("preview", str(tmp_path / "big.toml"), "--n", "0")
    assert (wrong.returncode, "at least 1 value" in wrong.stderr) == (65, True)
    (tmp_path / "bad.toml").write_text("title = 3")
    assert run("preview", str(tmp_path / "bad.toml")).returncode == 65


def answered(campaign: Campaign, n: int) -> dict[str, str]:
    return dict(supported(campaign, campaign_errors(campaign, [n])[0]))


def test_questions_of_other_campaigns() -> None:
    huge = {"kind": "linear", "from": 0.0, "to": 3000.0, "step": 0.001}
    assert answered(new_campaign(grid=huge, scheme="dpf"), 1000).keys() == {"Anything at all"}
    score = {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01}
    assert answered(new_campaign(grid=score, strata=["a", "b"]), 5000)["Calibration by Algorithm 2"].startswith(
        "no: it needs a reserve"
    )
    assert (
        answered(new_campaign(grid=score, strata=["a", "b"], reserve=1.0), 5000)["Calibration by Algorithm 2"] == "yes"
    )
    many = new_campaign(grid=score, strata=[str(i) for i in range(50)])
    assert "a stratum's total is lost in the noise" in answered(many, 1000)["Quantiles"]
    wide = {"kind": "linear", "from": 0.0, "to": 9.0, "step": 0.01}
    assert "a grid from 0 to 1" in answered(new_campaign(grid=wide, strata=["a", "b"]), 5000)["Calibration"]
    survival = new_campaign(grid={**wide, "from": 1.0}, strata=["event", "censored"], kind="survival")
    assert answered(survival, 5000)["Survival"] == "yes"


@pytest.mark.parametrize("strata", [["no", "yes"], ["a", "b", "c", "d"]])
def test_expected_errors_are_those_of_a_release(strata: list[str]) -> None:
    """Of values spread evenly, by the analyst's own exact formulas: within 25 %."""
    campaign = new_campaign(grid={"kind": "linear", "from": 0.0, "to": 1.0, "step": 1 / 1024}, strata=strata)
    n, each = 40_000, 40_000 // len(strata)
    (found,) = campaign_errors(campaign, [n])
    even = np.tile(np.append(np.arange(1, 1026) * each / 1025, np.full(2048 - 1025, each)), (len(strata), 1))
    whole = (even + each * np.arange(len(strata))[:, np.newaxis]).ravel()
    release = Release.from_curve(campaign, n, np.round(whole).astype(np.int64))
    area = release.roc(strata[0], strata[1]).area
    assert found.auc == pytest.approx(area.noise_error, rel=0.25)
    bins = release.histogram(20, strata[1]).standard_errors / each
    assert found.bin_share == pytest.approx(np.sqrt((bins**2).mean()), rel=0.25)
    with pytest.raises(InvalidCampaign, match="at least 1 value"):
        campaign_errors(campaign, [])


def test_axes_name_the_value_and_its_unit() -> None:
    assert curves.x_label(new_campaign(name="HbA1c", unit="%", title="Clinic")) == "HbA1c (%)"
    assert curves.x_label(new_campaign(name="HbA1c", title="Clinic")) == "HbA1c"
