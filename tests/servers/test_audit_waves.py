"""Waves and pools are audited like anything else: each lie is named, with the number and the server."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fss import field
from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES, row_bytes
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.release import ReleaseName
from servers.audit.material import Export, check_folder, release_folder
from servers.audit.verdict import EXIT_STATUS, HONEST, NOTHING, WRONG, overall
from servers.compute.shares import share_of
from servers.release import add_noise
from servers.release.noise import NoiseTree, covers
from servers.storage.entries import id_of, split
from tests.harness.server_pair import LivePair
from tests.servers.audits import (
    Folders,
    change_upload,
    copied,
    detail,
    digest_of,
    drop_upload,
    found,
    handed_over,
    rename_set,
    sign_messages,
    sign_shares,
    sign_statement,
    status,
    wrong,
)
from tests.servers.test_check import POSITIONS, forged, send
from tests.servers.waves import close, until_released, wave_campaign

pytestmark = pytest.mark.faults

FORGED = 30  # keys of "another payload"
RELEASES = ["wave 1", "pooled 2"]
POOL = ReleaseName("pooled", 2)
POOLED: list[dict[str, Any]] = [{"through": 2, "epsilon": 0.5}, {"through": "end", "epsilon": 0.25}]


@pytest.fixture(scope="module")
def campaign(pair: LivePair) -> Campaign:
    """Wave 1 with uploads of a dishonest party, wave 2 too small to be released alone, and a pool of both."""
    made = wave_campaign(count=4, check_keys=True, grid=POSITIONS, pooled=POOLED)
    pair.create(made)
    for wave, count in ((1, 30), (2, 4), (3, 20)):
        pair.upload_values(made, np.random.default_rng(wave).integers(0, 32, count))
        if wave == 1:
            send(pair, made, forged(made, "another payload"))
        close(pair, made, wave)
    until_released(pair, made, "wave 3")
    for release in ({"wave": 1}, {"wave": 3}, {"pooled": 2}):
        pair.ask(0, made, "curve", **release)
    return made


@pytest.fixture(scope="module")
def originals(pair: LivePair, campaign: Campaign, tmp_path_factory: pytest.TempPathFactory) -> list[Folders]:
    folder = tmp_path_factory.mktemp("audit")
    return [handed_over(pair, campaign, folder, audited) for audited in (0, 1)]


@pytest.fixture
def folders(originals: list[Folders], tmp_path: Path) -> Folders:
    """Of server 1."""
    return copied(originals[1], tmp_path)


@pytest.mark.parametrize("audited", [0, 1])
def test_an_honest_pair_passes(
    originals: list[Folders], campaign: Campaign, audited: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """An analyst asked server 0 only: server 1 never asked it for a share, and yet its numbers are compared."""
    assert status(originals[audited], digest_of(campaign)) == EXIT_STATUS[HONEST] == 0
    printed = capsys.readouterr().out
    for release in ("wave 1", "wave 3", "pooled 2"):
        assert f"{release}: published curve of server 0".ljust(41) + "honest\n" in printed
        assert (f"{release}: shares at all positions" in printed) == (audited == 1)
    for wave in (1, 2, 3):
        assert f"wave {wave}: check messages".ljust(41) + "honest\n" in printed
        assert f"wave {wave}: uploads that passed".ljust(41) + "honest\n" in printed
    compared = sum(finding.numbers for finding in found(originals[audited], campaign))
    checked, curves = 30 + FORGED + 4 + 20, 3 * (2 if audited else 1) << campaign.bits
    assert compared == 3 * checked + checked + curves


@pytest.mark.parametrize("release", RELEASES)
def test_seven_is_added(folders: Folders, campaign: Campaign, release: str) -> None:
    def lie(share: field.Words) -> field.Words:
        share[5] = field.add(share[5:6], np.array([7], np.uint64))[0]
        return share

    sign_shares(folders[1], campaign, release, lie)
    findings = found(folders, campaign)
    assert wrong(findings) == {f"{release}: shares at all positions": 1, f"{release}: published curve of server 0": 0}
    what = f"{release}: shares at all positions"
    assert detail(findings, what) == f"1 of {1 << campaign.bits} numbers differ, the first at place 5, by 7"
    assert status(folders, digest_of(campaign)) == EXIT_STATUS[WRONG] == 3


@pytest.mark.parametrize("release", RELEASES)
def test_other_noise(folders: Folders, campaign: Campaign, release: str) -> None:
    """Of the other release, or that a secret makes which was not committed to."""
    keys, evidence = folders
    export = Export(keys, campaign)
    made = export.releases[ReleaseName.parse(release)]
    assert made.sealed.key_file is not None
    bound = covers(campaign.id, campaign.variable.name, made.sealed.checksum, made.sealed.key_file)
    noise_of = partial(NoiseTree, server=1, covers=bound, mechanism=made.campaign.noise)
    other = noise_of(bytes(32)).curve() - noise_of(export.noise_secret(ReleaseName.parse(release))).curve()
    sign_shares(evidence, campaign, release, lambda share: field.add(share, field.encode(other)))
    findings = found(folders, campaign)
    places = np.flatnonzero(other)
    expected = (
        f"{places.size} of {1 << campaign.bits} numbers differ, the first at place {places[0]}, by {other[places[0]]}"
    )
    assert detail(findings, f"{release}: shares at all positions") == expected
    (release_folder(keys, ReleaseName.parse(release)) / "noise.secret").write_text("00" * 32)
    findings = found(folders, campaign)
    assert wrong(findings) == {f"{release}: noise": 1}


def test_the_noise_of_another_epsilon(folders: Folders, campaign: Campaign) -> None:
    """A pool has its own epsilon: with the noise of a wave's it is found out, though the secret is the right one."""
    keys, evidence = folders
    export = Export(keys, campaign)
    made = export.releases[POOL]
    assert made.sealed.key_file is not None
    bound = covers(campaign.id, campaign.variable.name, made.sealed.checksum, made.sealed.key_file)
    shares = [share_of(campaign, export.uploads[wave].keys()) for wave in (1, 2)]
    source = add_noise.NoiseKey(export.noise_secret(POOL), 1, bound, campaign.released(((campaign.epsilon, 1),)))
    sign_shares(evidence, campaign, "pooled 2", lambda _: add_noise.noisy_curve(shares[0] + shares[1], source))
    assert "pooled 2: shares at all positions" in wrong(found(folders, campaign))


@pytest.mark.parametrize("release", RELEASES)
def test_another_set(folders: Folders, campaign: Campaign, release: str) -> None:
    """It evaluates without one upload; or says afterwards that there was one less."""
    keys, evidence = folders
    one = share_of(campaign, Export(keys, campaign).uploads[1].keys(np.array([3])))
    source = add_noise.NoiseKey(bytes(32), 1, b"", campaign)
    noise = field.encode(source.tree().curve())
    share = field.sub(add_noise.noisy_curve(one, source), noise)
    sign_shares(evidence, campaign, release, lambda signed: field.sub(signed, share))
    assert wrong(found(folders, campaign))[f"{release}: shares at all positions"] == 1
    drop_upload(keys / "wave-1" / "uploads", campaign, 3)
    findings = found(folders, campaign)
    assert wrong(findings) == {"uploads handed over": 1}
    assert detail(findings, "uploads handed over") == (
        "29 uploads of wave 1 are handed over; about.json names 30 or others"
    )
    rename_set(keys, campaign, 1)
    findings = found(folders, campaign)
    assert wrong(findings)[f"{release}: set of uploads"] == 1
    count = 30 if release == "wave 1" else 34
    expected = f"{count - 1} uploads are handed over, {count} were signed for"
    assert detail(findings, f"{release}: set of uploads") == expected


def test_a_dropped_upload_that_passed(folders: Folders, campaign: Campaign) -> None:
    """It is not in the set though both servers' messages accept it: the check itself says so."""
    keys, _ = folders
    dropped, rejected = drop_upload(keys / "wave-1" / "uploads", campaign, 3), keys / "wave-1" / "rejected"
    rejected.write_bytes(rejected.read_bytes() + dropped)
    rename_set(keys, campaign, 1)
    findings = found(folders, campaign)
    assert wrong(findings)["wave 1: uploads that passed"] == 1
    assert detail(findings, "wave 1: uploads that passed") == (
        f"1 uploads passed and are not in the set, the first {to_base64url(dropped[:UPLOAD_ID_BYTES])}"
    )


@pytest.mark.parametrize(("row", "called"), [(0, "digest"), (1, "f"), (2, "q")])
def test_a_false_check_message(folders: Folders, campaign: Campaign, row: int, called: str) -> None:
    def lie(messages: field.Words) -> field.Words:
        messages[11, row] = field.add(messages[11:12, row], np.array([5], np.uint64))[0]
        return messages

    sign_messages(check_of(folders[1]), lie)
    findings = found(folders, campaign)
    assert wrong(findings) == {"wave 1: check messages": 1}
    entry = split((check_of(folders[0]) / "entries").read_bytes())[11]
    about = to_base64url(id_of(entry))
    expected = f"messages about 1 of {30 + FORGED} uploads differ, the first about upload {about}: its {called} by 5"
    assert detail(findings, "wave 1: check messages") == expected


def check_of(folder: Path) -> Path:
    (path,) = check_folder(folder, 1, "").parent.glob("check-*")
    return path


@pytest.mark.parametrize("part", [0, 1])
def test_a_false_challenge(folders: Folders, campaign: Campaign, part: int) -> None:
    """It names another challenge, which its messages may well fit: the campaign commits both servers to one."""
    path = check_of(folders[0]) / "seeds"
    seeds = path.read_text().split()
    seeds[part] = "ab" * 32
    path.write_text("\n".join(seeds))
    findings = found(folders, campaign)
    assert wrong(findings) == {"wave 1: challenge": 1}
    expected = f"the part of server {part} in the challenge is not what the campaign commits it to"
    assert detail(findings, "wave 1: challenge") == expected


def test_the_challenge_of_another_wave(folders: Folders, campaign: Campaign) -> None:
    keys, _ = folders
    (other,) = check_folder(keys, 2, "").parent.glob("check-*")
    (check_of(keys) / "seeds").write_text((other / "seeds").read_text())
    assert wrong(found(folders, campaign)) == {"wave 1: challenge": 1}


@pytest.mark.parametrize("release", RELEASES)
def test_other_keys(folders: Folders, campaign: Campaign, release: str) -> None:
    """It evaluates other keys and says so; or hands over other ones: both servers agreed on the hash of each."""
    sign_statement(folders, release, keys=bytes(32))
    assert wrong(found(folders, campaign)) == {f"{release}: keys": 1}
    change_upload(folders[0] / "wave-1" / "uploads", campaign, 0)
    rename_set(folders[0], campaign, 1)
    findings = found(folders, campaign)
    assert wrong(findings)[f"{release}: set of uploads"] == 1
    assert wrong(findings)["wave 1: uploads that were checked"] == 1


def test_another_key_for_an_upload_that_was_rejected(folders: Folders, campaign: Campaign) -> None:
    """So that its message about it would be right: the leaf of the upload does not fit."""
    keys, _ = folders
    change_upload(keys / "wave-1" / "rejected", campaign, 2)
    findings = found(folders, campaign)
    assert wrong(findings) == {"wave 1: uploads that were checked": 1}
    data = (keys / "wave-1" / "rejected").read_bytes()
    upload_id = data[2 * row_bytes(campaign) :][:UPLOAD_ID_BYTES]
    expected = f"the key of upload {to_base64url(upload_id)} is not the one that was checked"
    assert detail(findings, "wave 1: uploads that were checked") == expected


def test_messages_that_the_other_server_made_up(folders: Folders, campaign: Campaign) -> None:
    """Played by the accuser, and by the accused: what is not signed by the other one is wrong at whoever shows it."""
    keys, evidence = folders
    for folder, server, what in (
        (check_of(evidence), 0, "wave 1: check messages"),
        (check_of(keys / "kept"), 1, "wave 1: uploads that passed"),
    ):
        (path,) = folder.glob("*.answer")
        data = path.read_bytes()
        path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        assert wrong(found(folders, campaign)) == {what: server}
        path.write_bytes(data)


def test_what_the_audited_server_published(originals: list[Folders], campaign: Campaign, tmp_path: Path) -> None:
    """Analysts asked server 0 only, so server 1 has no share of it; what it told them is compared all the same."""
    folders = copied(originals[0], tmp_path)
    assert not list(folders[1].glob("release-*/*.answer"))
    path = release_folder(folders[0] / "kept", POOL) / "release.npy"
    published = np.load(path)
    published[8] += 3
    np.save(path, published)
    findings = found(folders, campaign)
    what = "pooled 2: published curve of server 0"
    assert wrong(findings) == {what: 0}
    assert detail(findings, what) == f"1 of {1 << campaign.bits} published numbers differ, the first at place 8, by 3"


def test_keys_that_are_erased_leave_nothing_to_compare(folders: Folders, campaign: Campaign) -> None:
    keys, _ = folders
    (keys / "wave-1" / "uploads").unlink()
    text = (keys / "about.json").read_text()
    (keys / "about.json").write_text(text.replace('"erased":false', '"erased":true', 1))
    findings = found(folders, campaign)
    assert overall(findings) == NOTHING
    nothing = {finding.what: finding.detail for finding in findings if finding.verdict == NOTHING}
    assert set(nothing) == {"wave 1: set of uploads", "pooled 2: set of uploads"}
    assert set(nothing.values()) == {"the keys of wave 1 were erased after their last release"}
    assert status(folders, digest_of(campaign)) == EXIT_STATUS[NOTHING] == 4
