"""Nobody counts twice: lies of one server, corrected files, other folders, lost answers; and what a receipt tells."""

import json
import random
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dealer
from dealer.receipt import default_path, open_receipt
from dealer.upload_secrets import UploadSecrets
from fss_ecdf.campaign.campaign import Campaign, Positions
from fss_ecdf.campaign.errors import InvalidValue, NotAuthenticated, Problem, TryAgain
from tests.chaos.liar import Liar
from tests.dealer.helpers import make, run, sites, stored
from tests.harness.server_pair import LivePair, name
from tests.servers.test_answers import both_noises, true_curve


@pytest.fixture
def liar(pair: LivePair) -> Iterator[Liar]:
    with Liar(pair, 1) as started:
        yield started


def place(campaign: Campaign, *values: int) -> Positions:
    return campaign.to_positions(list(values))


def says(liar: Liar, *lies: str) -> None:
    """These, then the truth."""
    todo = list(lies)
    liar.choose = lambda: todo.pop(0) if todo else "honest"


def counts(pair: LivePair, campaign: Campaign, *values: int) -> None:
    """Sealed, the campaign has these values and no other."""
    assert pair.seal(campaign)["count"] == len(values)
    pair.wait_ready(campaign)
    raw = true_curve(campaign, campaign.to_positions(list(values)).positions) + both_noises(pair, campaign)
    assert pair.ask(0, campaign, "curve")["counts"] == raw[:201].tolist()


# One server lies


def test_a_server_that_stores_and_says_503_does_not_make_a_party_count_twice(pair: LivePair, liar: Liar) -> None:
    """Two lies, three attempts, as in the README: once under three ids, now once."""
    campaign = make(pair, min_uploads=1)
    placed, at = place(campaign, 37), sites(pair, campaign, liar=liar)
    liar.choose = lambda: "deny"
    for _ in range(2):
        with pytest.raises(Problem):
            dealer.upload(placed, campaign, at)
        assert stored(pair, campaign)[0] == 0  # the honest one: nothing of the attempt can count
    says(liar)
    dealer.upload(placed, campaign, at)
    counts(pair, campaign, 37)


@pytest.mark.parametrize("lie", ["deny", "away", "late", "nonsense"])
def test_nothing_is_sent_anew_before_both_have_confirmed_the_withdrawal(pair: LivePair, liar: Liar, lie: str) -> None:
    campaign = make(pair, min_uploads=1)
    placed, at = place(campaign, 5, 6), sites(pair, campaign, liar=liar)
    liar.choose = lambda: lie
    with pytest.raises(Problem, match="server 1 has not confirmed"):
        dealer.upload(placed, campaign, at)
    told = len(liar.told)
    with pytest.raises(Problem, match="server 1 has not confirmed"):
        dealer.upload(placed, campaign, at)
    assert len(liar.told) == told + 1  # the withdrawal again, and no upload
    assert stored(pair, campaign)[0] == 0
    says(liar)
    assert dealer.upload(placed, campaign, at).sent == 2
    liar.catch_up(random.Random(1))
    counts(pair, campaign, 5, 6)


@pytest.fixture
def network(pair: LivePair) -> Iterator[Liar]:
    """In front of server 0, which is honest."""
    with Liar(pair, 0) as started:
        yield started


def behind(network: Liar, campaign: Campaign, at: dealer.ServerPair, pair: LivePair) -> dealer.ServerPair:
    urls = [f"{network.url}/v1/campaigns/{name(campaign)}", at.urls[1]]
    return dealer.ServerPair(urls, at.token, pair.folder / "ca.pem", digest=campaign.digest, attempts=1)


def test_the_liar_s_confirmation_alone_is_not_enough(pair: LivePair, liar: Liar, network: Liar) -> None:
    """Both have stored it; the liar says that it has withdrawn it, and the honest server was not reached."""
    campaign = make(pair, min_uploads=1)
    at = behind(network, campaign, sites(pair, campaign, liar=liar), pair)
    says(liar, "deny", "forget", "forget")
    says(network, "honest", "away", "away")
    for _ in range(2):
        with pytest.raises(Problem, match="server 0 has not confirmed"):
            dealer.upload(place(campaign, 5), campaign, at)
    assert stored(pair, campaign) == [1, 1]
    says(liar, "forget", "honest")
    dealer.upload(place(campaign, 5), campaign, at)
    assert stored(pair, campaign) == [1, 2]
    counts(pair, campaign, 5)


def test_a_withdrawal_that_arrives_late_takes_nothing_with_it(pair: LivePair, liar: Liar, network: Liar) -> None:
    """Once a withdrawal is on its way, its ids are not sent again, or a party would be told what is not true."""
    campaign = make(pair, min_uploads=1)
    at = behind(network, campaign, sites(pair, campaign, liar=liar), pair)
    says(liar, "away", "away")
    says(network, "honest", "late")
    with pytest.raises(Problem, match="server 0 has not confirmed"):
        dealer.upload(place(campaign, 5), campaign, at)
    assert stored(pair, campaign) == [1, 0]
    dealer.upload(place(campaign, 5), campaign, at)
    network.catch_up(random.Random(1))
    counts(pair, campaign, 5)


@pytest.mark.parametrize("lie", ["withdrawn", "conflict"])
def test_ids_that_a_server_refuses_are_withdrawn_before_others_are_used(pair: LivePair, liar: Liar, lie: str) -> None:
    campaign = make(pair, min_uploads=1)
    says(liar, lie)
    assert dealer.upload(place(campaign, 5), campaign, sites(pair, campaign, liar=liar)).sent == 1
    assert liar.told == [lie, "honest", "honest"]
    counts(pair, campaign, 5)


def test_a_server_that_forgets_keeps_a_party_out_and_does_not_double_it(pair: LivePair, liar: Liar) -> None:
    """What a party cannot prevent: the set is what both hold. A forgotten withdrawal does not help the liar."""
    campaign = make(pair, min_uploads=1)
    at = sites(pair, campaign, liar=liar)
    says(liar, "forget")
    dealer.upload(place(campaign, 5), campaign, at)
    assert stored(pair, campaign) == [1, 0]
    says(liar, "honest", "forget")
    dealer.upload(place(campaign, 7), campaign, at, replace=True)
    says(liar, "forget", "honest")
    dealer.upload(place(campaign, 8), campaign, at, replace=True)
    assert stored(pair, campaign) == [1, 1]
    counts(pair, campaign, 8)


def test_an_answer_that_was_lost_is_asked_for_again_even_after_sealing(pair: LivePair, tmp_path: Path) -> None:
    """The program ended between storing and noting it: the same bytes again, which both servers have."""
    campaign = make(pair, min_uploads=1)
    path = tmp_path / "r.json"
    dealer.upload(place(campaign, 5), campaign, sites(pair, campaign), receipt=path)
    path.write_text(path.read_text().replace('"done"', '"sending"'))
    pair.seal(campaign)
    assert dealer.upload(place(campaign, 5), campaign, sites(pair, campaign), receipt=path).sent == 1
    assert pair.status(campaign)["uploads"] == 1


# Other values, other folders


def test_a_corrected_file_is_refused_and_can_replace_or_be_withdrawn(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair, min_uploads=1)
    for file, values in (("wrong.csv", "1\n2\n3\n"), ("right.csv", "1\n2\n4\n")):
        (tmp_path / file).write_text(values)
    assert run(pair, campaign, "--file", "wrong.csv", "--yes", cwd=tmp_path).returncode == 0
    refused = run(pair, campaign, "--file", "right.csv", "--yes", cwd=tmp_path)
    assert refused.returncode == 65
    assert "`fss-dealer withdraw`" in refused.stderr
    assert "`fss-dealer upload --replace`" in refused.stderr
    replaced = run(pair, campaign, "--file", "right.csv", "--yes", "--replace", cwd=tmp_path)
    assert "both servers have stored 3 values" in replaced.stdout, replaced.stderr
    back = run(pair, campaign, command="withdraw", cwd=tmp_path)
    assert "withdrawn what was sent: 3 values" in back.stdout, back.stderr
    assert stored(pair, campaign) == [0, 0]
    assert run(pair, campaign, command="withdraw", cwd=tmp_path).stdout.endswith("0 values\n")
    assert run(pair, campaign, "--file", "right.csv", "--yes", cwd=tmp_path).returncode == 0
    counts(pair, campaign, 1, 2, 4)
    late = run(pair, campaign, command="withdraw", cwd=tmp_path)
    assert (late.returncode, "[campaign-sealed]" in late.stderr) == (77, True)


class Stop(Exception):
    pass


def test_a_file_that_was_edited_in_between_is_not_mixed(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair)
    at, path = sites(pair, campaign), tmp_path / "r.json"
    values = np.arange(7000) % 200

    def stop(count: int) -> None:
        if count:
            raise Stop

    with pytest.raises(Stop):
        dealer.upload(campaign.to_positions(values.tolist()), campaign, at, receipt=path, progress=stop)
    assert 0 < stored(pair, campaign)[0] < 7000
    edited = values.copy()
    edited[6999] += 1
    with pytest.raises(InvalidValue, match="other values than these"):
        dealer.upload(campaign.to_positions(edited.tolist()), campaign, at, receipt=path)
    assert dealer.upload(campaign.to_positions(values.tolist()), campaign, at, receipt=path).already_sent
    assert stored(pair, campaign) == [7000, 7000]
    assert (
        dealer.upload(campaign.to_positions(edited[:2500].tolist()), campaign, at, receipt=path, replace=True).sent
        == 2500
    )
    assert stored(pair, campaign) == [2500, 2500]


def test_a_second_upload_from_another_folder_counts_once(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair, min_uploads=1)
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        done = run(pair, campaign, "--value", "63", "--yes", cwd=tmp_path / folder)
        assert done.returncode == 0, done.stderr
        assert not list((tmp_path / folder).iterdir())
    assert "1 were there from before" in done.stdout
    assert stored(pair, campaign) == [1, 1]
    dealer.upload(place(campaign, 63), campaign, sites(pair, campaign))
    assert "counts too" in run(pair, campaign, "--value", "63", "--dry-run").stdout
    counts(pair, campaign, 63)


# Receipts


def test_where_receipts_are_kept() -> None:
    assert default_path("ID", {"FSS_RECEIPTS": "/r", "XDG_DATA_HOME": "/x"}) == Path("/r/ID.receipt.json")
    assert default_path("ID", {"XDG_DATA_HOME": "/x", "HOME": "/h"}) == Path("/x/fss-ecdf/ID.receipt.json")
    assert default_path("ID", {"HOME": "/h"}) == Path("/h/.local/share/fss-ecdf/ID.receipt.json")
    with pytest.raises(InvalidValue, match="FSS_RECEIPTS"):
        default_path("ID", {})


def test_a_thief_of_the_receipt_needs_the_token_to_guess(pair: LivePair, tmp_path: Path) -> None:
    """Which is what docs/security.md says: with the token, one value of a small grid is found by trying all."""
    campaign = make(pair)
    path = tmp_path / "folder" / "r.json"
    dealer.upload(place(campaign, 63), campaign, sites(pair, campaign), receipt=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    body = json.loads(path.read_text())
    assert set(body) == {"version", "campaign", "salt", "token", "data", "values", "batch", "form", "parts"}

    def guesses(token: str) -> list[int]:
        source = UploadSecrets.of(bytes.fromhex(body["salt"]), token)
        return [v for v in range(201) if source.values_fingerprint(place(campaign, v).positions) == body["data"]]

    assert guesses("fss-up-guessed") == []
    assert guesses(pair.upload_tokens[campaign.id]) == [63]
    assert dealer.withdraw(sites(pair, campaign), receipt=path) == 1
    assert json.loads(path.read_text())["data"] == ""


def test_other_values_never_meet_the_same_randomness() -> None:
    """Nor another generation, batch, campaign or wave."""
    campaign, other = (Campaign.from_dict({**_FIELDS, "id": bytes([i] * 32)}) for i in (1, 2))
    source = UploadSecrets.of(bytes(32), "token")
    root_seeds = {
        source.make_keys(number, generation, np.array([value]), where, wave).keys[0].to_bytes()[8:24]
        for number, generation, value, where, wave in [
            (0, 0, 5, campaign, 0),
            (0, 0, 6, campaign, 0),
            (0, 1, 5, campaign, 0),
            (1, 0, 5, campaign, 0),
            (0, 0, 5, other, 0),
            (0, 0, 5, campaign, 1),
        ]
    }
    assert len(root_seeds) == 6
    assert np.array_equal(source.ids(0, 0, 5)[:2], source.ids(0, 0, 2))
    assert not np.array_equal(source.ids(0, 1, 2), source.ids(0, 0, 2))


_FIELDS = {
    "title": "T",
    "question": "Q?",
    "epsilon": 1.0,
    "variables": [{"name": "risk", "grid": {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01}}],
}


def test_a_wrong_token_can_be_corrected_and_a_used_one_is_needed_again(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair)
    path, placed = tmp_path / "r.json", place(campaign, 5)
    with pytest.raises(NotAuthenticated):
        dealer.upload(placed, campaign, sites(pair, campaign, "fss-up-wrong"), receipt=path)
    assert dealer.upload(placed, campaign, sites(pair, campaign), receipt=path).sent == 1
    with pytest.raises(InvalidValue, match="another token"):
        dealer.withdraw(sites(pair, campaign, "fss-up-wrong"), receipt=path)
    assert stored(pair, campaign) == [1, 1]


def test_bad_receipts_are_refused(pair: LivePair, tmp_path: Path) -> None:
    campaign, other = make(pair), make(pair)
    path = tmp_path / "r.json"
    dealer.upload(place(campaign, 5), campaign, sites(pair, campaign), receipt=path)
    with pytest.raises(InvalidValue, match="another campaign"):
        dealer.upload(place(other, 5), other, sites(pair, other), receipt=path)
    with pytest.raises(InvalidValue, match="there is no receipt"):
        dealer.withdraw(sites(pair, campaign), receipt=tmp_path / "none.json")
    good = path.read_text()
    for bad in ("{", "[]", good.replace('"done"', '"well"'), good.replace('"version": 6', '"version": 5')):
        path.write_text(bad)
        with pytest.raises(InvalidValue, match="not a receipt"):
            dealer.upload(place(campaign, 5), campaign, sites(pair, campaign), receipt=path)


def test_two_programs_do_not_share_a_receipt(pair: LivePair, tmp_path: Path) -> None:
    """Both would make ids of their own."""
    campaign = make(pair)
    path = tmp_path / "r.json"
    at = sites(pair, campaign)
    with (
        open_receipt(path, name(campaign), at.token, bytes),
        pytest.raises(TryAgain, match="another upload is at work"),
    ):
        dealer.upload(place(campaign, 5), campaign, at, receipt=path)


def test_nothing_is_sent_without_a_place_for_the_receipt(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair)
    (tmp_path / "file").write_text("")
    done = run(pair, campaign, "--value", "5", "--yes", "--receipt", str(tmp_path / "file" / "r.json"))
    assert done.returncode == 64, done.stderr
    assert "Traceback" not in done.stderr
    assert stored(pair, campaign) == [0, 0]
