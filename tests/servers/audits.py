"""What several tests of audits do: hand over, compare, and sign as a lying server would."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fss.field import Words
from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES, ShareMessage, decode_shares, encode_shares, row_bytes
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.json_messages import read
from fss_ecdf.campaign.release import ReleaseName
from fss_ecdf.cli.common import OK
from fss_ecdf.cli.server import main
from fss_ecdf.net.server_identity import Identity
from servers.audit.material import About, Export, release_folder
from servers.audit.verdict import WRONG, Finding
from servers.audit.verify import verify
from servers.release.statement import Signed, covered, covered_messages, split
from tests.harness.server_pair import IDENTITIES, LivePair, name

Folders = tuple[Path, Path]  # what the audited server handed over, and the evidence of the other one


def digest_of(campaign: Campaign) -> str:
    return to_base64url(campaign.digest)


def config(pair: LivePair, role: int) -> str:
    return str(pair.folder / f"server{role}" / "server.toml")


def handed_over(pair: LivePair, campaign: Campaign, folder: Path, audited: int = 1) -> Folders:
    keys, evidence = folder / f"keys{audited}", folder / f"evidence{1 - audited}"
    about = [name(campaign), "--config"]
    assert main(["audit", "export-keys", *about, config(pair, audited), "--out", str(keys)]) == OK
    assert main(["audit", "export-evidence", *about, config(pair, 1 - audited), "--out", str(evidence)]) == OK
    return keys, evidence


def copied(folders: Folders, to: Path) -> Folders:
    """For a test that changes them."""
    keys, evidence = (Path(shutil.copytree(folder, to / folder.name)) for folder in folders)
    return keys, evidence


def status(folders: Folders, digest: str) -> int:
    """What `audit verify` ends with."""
    keys, evidence = folders
    return main(["audit", "verify", "--keys", str(keys), "--evidence", str(evidence), "--digest", digest])


def found(folders: Folders, campaign: Campaign) -> list[Finding]:
    return verify(*folders, digest_of(campaign))


def wrong(findings: list[Finding]) -> dict[str, int | None]:
    """What is wrong, and at which server."""
    return {finding.what: finding.server for finding in findings if finding.verdict == WRONG}


def detail(findings: list[Finding], what: str) -> str:
    return next(finding.detail for finding in findings if finding.what == what)


def answer_of(evidence: Path, release: str, asked: bytes = b'"positions":"all"') -> Path:
    """The file of the signed answer to such a question."""
    for path in release_folder(evidence, ReleaseName.parse(release)).glob("*.answer"):
        if asked in path.with_suffix(".question").read_bytes():
            return path
    raise AssertionError(release)


def sign_shares(
    evidence: Path, campaign: Campaign, release: str, lie: Callable[[Words], Words], server: int = 1
) -> None:
    """The other server kept what a lying one would have signed: other shares than its keys and its noise make."""
    path = answer_of(evidence, release)
    statement = read(Signed, (path.parent / "statement").read_bytes()).statement
    told = decode_shares(split(path.read_bytes())[0], campaign, server, 1 << campaign.bits)
    message = encode_shares(campaign, ShareMessage(server, told.key_set, told.uploads, lie(told.elements)))
    question = path.with_suffix(".question").read_bytes()
    path.write_bytes(message + Identity(IDENTITIES[server], server).sign(covered(statement, question, message)))


def sign_messages(folder: Path, lie: Callable[[Words], Words], server: int = 1) -> None:
    """The same with the messages of a check; `lie` gets them with a row for each upload."""
    (path,) = folder.glob("*.answer")
    told = np.frombuffer(split(path.read_bytes())[0], np.uint64).reshape(-1, 3)
    message = lie(told.copy()).tobytes()
    question = path.with_suffix(".question").read_bytes()
    signature = Identity(IDENTITIES[server], server).sign(covered_messages(server, question, message))
    path.write_bytes(message + signature)


def sign_statement(folders: Folders, release: str, server: int = 1, **changes: Any) -> None:
    """A lying server signed another statement, and everywhere."""
    for folder in folders:
        path = release_folder(folder, ReleaseName.parse(release)) / "statement"
        said = read(Signed, path.read_bytes()).statement.model_copy(update=changes)
        data = b"fss-ecdf statement 1\n" + said.to_json().encode()
        signature = to_base64url(Identity(IDENTITIES[server], server).sign(data))
        path.write_text(Signed(statement=said, signature=signature).to_json())


def rename_set(keys: Path, campaign: Campaign, number: int) -> None:
    """The audited server says in its own words, too, that a wave has the set that it hands over."""
    about = read(About, (keys / "about.json").read_bytes())
    made = Export(keys, campaign).sets[number]
    change = {"count": made.count, "checksum": made.checksum}
    waves = [wave.model_copy(update=change) if wave.number == number else wave for wave in about.waves]
    (keys / "about.json").write_text(About(server=about.server, waves=waves).to_json())


def change_upload(path: Path, campaign: Campaign, place: int, at: int = UPLOAD_ID_BYTES + 40) -> None:
    """Another key under the same id; a byte of its words."""
    data = bytearray(path.read_bytes())
    data[place * row_bytes(campaign) + at] ^= 1
    path.write_bytes(bytes(data))


def drop_upload(path: Path, campaign: Campaign, place: int) -> bytes:
    """What was there."""
    data, size = path.read_bytes(), row_bytes(campaign)
    path.write_bytes(data[: place * size] + data[(place + 1) * size :])
    return data[place * size : (place + 1) * size]
