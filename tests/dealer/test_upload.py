"""fss-dealer against two live servers: consent, receipts, interruptions, refusals, and what a file must not contain."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import dealer
from fss.challenge import derive
from fss.check import accept, sum_and_messages
from fss_ecdf.campaign.binary_messages import decode_uploads
from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import CampaignSealed, DigestMismatch, InvalidValue, PeerUnavailable, Problem
from tests.dealer.helpers import DAYS, make, run, sites, stored, urls
from tests.harness.server_pair import ROOT, LivePair, name
from tests.servers.conftest import new_campaign
from tests.servers.test_answers import both_noises, true_curve


def test_a_csv_file_arrives_exactly_once(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair, strata=["no", "yes"])
    rng = np.random.default_rng(1)
    days, event = rng.integers(-4, 204, 2500), rng.choice(["no", "yes"], 2500)
    lines = [f"p{i};{d};{e}" for i, (d, e) in enumerate(zip(days, event, strict=True))]
    (tmp_path / "data.csv").write_text("\ufeffpatient;days;event\n" + "\n".join(lines) + "\n")
    columns = ["--file", "data.csv", "--column", "days", "--stratum-column", "event"]

    dry = run(pair, campaign, *columns, "--dry-run", cwd=tmp_path)
    assert dry.returncode == 0, dry.stderr
    for shown in (campaign.title, campaign.question, "epsilon 1", "201 thresholds from 0 to 200", "values    2500"):
        assert shown in dry.stdout
    assert f"{(days < 0).sum()} below and {(days > 200).sum()} above" in dry.stdout
    assert stored(pair, campaign) == [0, 0]

    assert "nothing was sent" in run(pair, campaign, *columns, stdin="n\n", cwd=tmp_path).stdout
    done = run(pair, campaign, *columns, "--receipt", "r.json", stdin="yes\n", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "both servers have stored 2500 values" in done.stdout
    again = run(pair, campaign, *columns, "--receipt", "r.json", "--yes", cwd=tmp_path)
    assert "2500 were there from before" in again.stdout
    assert stored(pair, campaign) == [2500, 2500]

    pair.seal(campaign)
    pair.wait_ready(campaign)
    positions = campaign.to_positions(days.tolist(), event.tolist()).positions
    raw = true_curve(campaign, positions) + both_noises(pair, campaign)
    assert pair.ask(0, campaign, "curve", stratum="no")["counts"] == raw[:201].tolist()


def test_one_value_and_standard_input(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair)
    assert run(pair, campaign, "--value", "63", "--yes").returncode == 0
    other = ["--receipt", str(tmp_path / "another party.json")]
    piped = run(pair, campaign, "--file", "-", "--yes", *other, stdin="1\n2\n\n3\n")
    assert piped.returncode == 0, piped.stderr
    assert stored(pair, campaign) == [4, 4]
    unasked = run(pair, campaign, "--file", "-", stdin="1\n")
    assert (unasked.returncode, "consent with --yes" in unasked.stderr) == (65, True)


def test_errors_are_one_clear_line(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair)
    (tmp_path / "bad.csv").write_text("days\n5\nmany\n")
    for args, code, message in (
        (["--file", str(tmp_path / "bad.csv"), "--column", "days"], 65, "row 3: 'many' is not a whole number"),
        (["--file", str(tmp_path / "bad.csv"), "--column", "age"], 65, "no column 'age'; the file has 'days'"),
        (["--file", str(tmp_path / "none.csv")], 64, "No such file"),
        (["--value", "7.5"], 65, "is not a whole number"),
    ):
        done = run(pair, campaign, *args, "--yes")
        assert done.returncode == code, done.stderr
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert stored(pair, campaign) == [0, 0]
    sealed = make(pair)
    pair.upload_values(sealed, np.arange(20))
    pair.seal(sealed)
    refused = run(pair, sealed, "--value", "3", "--yes")
    assert refused.returncode == 77
    assert "[campaign-sealed]" in refused.stderr


def test_bad_addresses_and_certificates(pair: LivePair) -> None:
    campaign = make(pair)
    good = urls(pair, campaign)
    for bad, message in (
        (good[:1], "two addresses"),
        ([good[0], good[0]], "the same server"),
        ([good[0], "http://x/v1/campaigns/a"], "not an address like"),
    ):
        with pytest.raises(InvalidValue, match=message):
            dealer.ServerPair(bad, "token")
    with pytest.raises(InvalidValue, match="wrong order"):
        dealer.ServerPair(good[::-1], "token", pair.folder / "ca.pem").fetch_campaign()
    with pytest.raises(Problem, match="certificate that is not trusted"):
        dealer.ServerPair(good, "token").fetch_campaign()


def test_servers_that_disagree_get_nothing(pair: LivePair) -> None:
    one = new_campaign(grid=DAYS)
    other = new_campaign(grid=DAYS, id=one.id, epsilon=9.0)
    pair.create(one, roles=[0])
    pair.create(other, roles=[1])
    with pytest.raises(DigestMismatch, match="different campaigns"):
        sites(pair, one).fetch_campaign()


def test_a_server_that_is_down_is_tried_again_later(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign = make(pair)
        placed = dealer.make_keys([1, 2, 3], campaign).placed
        at = dealer.ServerPair(
            urls(pair, campaign),
            pair.upload_tokens[campaign.id],
            pair.folder / "ca.pem",
            digest=campaign.digest,
            timeout_s=60,
            attempts=2,
        )
        pair.stop(1)
        receipt = tmp_path / "r.json"
        with pytest.raises(PeerUnavailable, match="server 1 cannot be reached"):
            dealer.upload(placed, campaign, at, receipt=receipt)
        pair.start(1)
        # What server 0 had is withdrawn there; when server 1 has confirmed it too, the values are sent under new ids.
        assert stored(pair, campaign) == [0, 0]
        assert dealer.upload(placed, campaign, at, receipt=receipt).sent == 3
        assert stored(pair, campaign) == [3, 3]


@pytest.mark.faults
def test_a_file_waits_for_a_server_as_long_as_it_is_told_and_says_so(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign, file = make(pair), tmp_path / "days.csv"
        file.write_text("days\n" + "".join(f"{day}\n" for day in range(12)))
        pair.stop(1)
        short = run(pair, campaign, "--file", str(file), "--yes", "--patience", "0.02")
        assert short.returncode == 75, short.stderr
        back = threading.Timer(4, lambda: pair.start(1))
        back.start()
        done = run(pair, campaign, "--file", str(file), "--yes")
        back.join()
        assert done.returncode == 0, done.stderr
        assert re.search(r"server 1 cannot be reached.*; trying again, for \d+ s yet", done.stderr), done.stderr
        assert stored(pair, campaign) == [12, 12]


def test_a_campaign_that_fills_up_keeps_no_half(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair, min_uploads=1, max_uploads=5)
    placed = dealer.make_keys([1, 2, 3, 4], campaign).placed
    dealer.upload(placed, campaign, sites(pair, campaign))
    with pytest.raises(Problem, match=r"takes 5 uploads and has 4.*withdrawn at both servers"):
        dealer.upload(placed, campaign, sites(pair, campaign), receipt=tmp_path / "r.json")
    assert stored(pair, campaign) == [4, 4]


@pytest.mark.faults
def test_an_interrupted_upload_goes_on_without_loss_or_duplicates(pair: LivePair, tmp_path: Path) -> None:
    """Killed in the midst of it, several times; then finished. Every value counts once."""
    campaign = make(pair)
    values = np.random.default_rng(3).integers(0, 201, 20_000)
    (tmp_path / "v.csv").write_text("days\n" + "\n".join(map(str, values)) + "\n")
    command = [sys.executable, "-m", "dealer.cli", "upload", "--campaign", *urls(pair, campaign), "--yes"]
    command += ["--ca", str(pair.folder / "ca.pem"), "--file", "v.csv", "--column", "days", "--receipt", "r.json"]
    known = {"FSS_UPLOAD_TOKEN": pair.upload_tokens[campaign.id], "FSS_CAMPAIGN_DIGEST": to_base64url(campaign.digest)}
    env = {**os.environ, **known, "PYTHONPATH": str(ROOT)}
    for parts in (0, 1, 4):  # as far as it may come before it is killed
        process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and _done(tmp_path / "r.json") < parts:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    finished = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert stored(pair, campaign) == [20_000, 20_000]
    assert _states(tmp_path / "r.json") == ["done"] * 20
    pair.seal(campaign)
    pair.wait_ready(campaign)
    raw = true_curve(campaign, campaign.to_positions(values.tolist()).positions) + both_noises(pair, campaign)
    assert pair.ask(1, campaign, "curve")["counts"] == raw[:201].tolist()


def _states(receipt: Path) -> list[str]:
    return [state for _, state, _, _ in json.loads(receipt.read_text())["parts"].values()]


def _done(receipt: Path) -> int:
    """How many parts both servers have confirmed."""
    return _states(receipt).count("done") if receipt.exists() else -1


def test_withdrawing_needs_an_open_campaign(pair: LivePair) -> None:
    campaign = make(pair)
    shared = dealer.make_keys(list(range(20)), campaign)
    for role in (0, 1):
        assert pair.upload(role, campaign, shared.envelope(role)).status_code == 200
    with pair.client(0, pair.upload_tokens[campaign.id]) as client:
        path = f"/v1/campaigns/{name(campaign)}/uploads/withdraw"
        assert client.post(path, content=shared.ids[:3].tobytes()).json()["withdrawn"] == 3
        assert client.post(path, content=shared.ids[:3].tobytes()).json()["withdrawn"] == 0
        assert client.post(path, content=b"short").status_code == 400
        pair.seal(campaign)
        assert client.post(path, content=shared.ids[3:].tobytes()).status_code == CampaignSealed.status


def test_share_is_reproducible_and_prints_nothing() -> None:
    campaign = new_campaign(grid=DAYS)

    def rand(count: int) -> bytes:
        return np.random.default_rng(count).bytes(count)

    first, second = (dealer.make_keys([5, 6], campaign, rand=rand) for _ in range(2))
    assert first.envelope(0) == second.envelope(0)
    assert repr(first) == "<KeyPairs 2 values, 256 bytes to each server>"


@pytest.mark.parametrize("scheme", ["dcf", "dpf"])
def test_envelopes_with_proofs_pass_the_check(scheme: str) -> None:
    campaign, unchecked = (new_campaign(grid=DAYS, scheme=scheme, check_keys=checked) for checked in (True, False))
    shared = dealer.make_keys([5, 6, 200], campaign)
    plain = dealer.make_keys([5, 6, 200], unchecked)
    assert len(shared.envelope(0)) == len(plain.envelope(0)) + 3 * 176
    challenge = derive(campaign.key_type(0).scheme, campaign.bits, campaign.digest, bytes(32), bytes(32))
    told = []
    for server in (0, 1):
        got = decode_uploads(shared.envelope(server), campaign, server)
        assert got.proofs is not None
        told.append(sum_and_messages(got.keys, got.proofs, challenge)[1])
    assert accept(told[0], told[1], challenge).all()


def test_files_as_they_come_and_what_is_left_out(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair)
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress("Alter;Größe\n3;1,5\nNA;1\n4;2\n".encode("latin-1")))
    columns = ["--file", "d.csv.gz", "--column", "Alter"]
    stopped = run(pair, campaign, *columns, "--yes", cwd=tmp_path)
    assert stopped.returncode == 65
    assert "1 of 3 rows cannot be used: row 3: 'NA'" in stopped.stderr
    assert "--skip-missing leaves them out" in stopped.stderr
    shown = run(pair, campaign, *columns, "--skip-missing", "--dry-run", "--histogram", cwd=tmp_path)
    assert "read as Latin-1" in shown.stdout
    assert "1 rows without a value are left out (1 NA)" in shown.stdout
    assert "up to 9  ##" in shown.stdout
    assert "nothing was sent" in shown.stdout
    assert run(pair, campaign, *columns, "--skip-missing", "--yes", cwd=tmp_path).returncode == 0
    assert stored(pair, campaign) == [2, 2]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--value", "3", "--stratum", "yes"], 65, "this campaign has no strata: leave out --stratum"),
        (["--value", "3", "--column", "x"], 64, "--column is for files"),
        (["--file", "-", "--stratum", "a", "--stratum-column", "b"], 64, "give one"),
        (["--value", "3", "--histogram"], 64, "it goes with --dry-run"),
        (["--value", "900"], 65, "the value lies off the grid, which goes from 0 to 200: is this the right column?"),
    ],
)
def test_options_without_effect_are_mistakes(pair: LivePair, args: list[str], code: int, message: str) -> None:
    campaign = make(pair)
    done = run(pair, campaign, *args, "--yes", stdin="1\n")
    assert (done.returncode, len(done.stderr.splitlines())) == (code, 1)
    assert message in done.stderr
    assert stored(pair, campaign) == [0, 0]


def test_clipping_has_to_be_allowed(pair: LivePair) -> None:
    campaign = make(pair)
    refused = run(pair, campaign, "--file", "-", "--yes", stdin="5\n900\n-3\n")
    assert refused.returncode == 65
    assert "1 values below and 1 above the grid from 0 to 200 are 67% of all 3" in refused.stderr
    assert run(pair, campaign, "--file", "-", "--yes", "--allow-clipping", stdin="5\n900\n-3\n").returncode == 0
    assert stored(pair, campaign) == [3, 3]


def test_nobody_to_consent(pair: LivePair) -> None:
    done = run(pair, make(pair), "--value", "3")
    assert done.returncode == 64
    assert done.stderr.endswith("fss-dealer: nobody is there to be asked: consent with --yes\n")
