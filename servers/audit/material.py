"""What an auditor reads: the folders that both servers handed over, and which set each release is made of."""

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fss import KeyBatch, KeyType
from fss.keys import file_header
from fss.proof import Proofs, proof_bytes
from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES, row_bytes
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.contribution import Contribution
from fss_ecdf.campaign.errors import InvalidUpload
from fss_ecdf.campaign.json_messages import Bytes32, Message, read
from fss_ecdf.campaign.release import ReleaseName
from servers.audit.tables import ExportedTables
from servers.audit.verdict import Wrong
from servers.release.noise import SEED_BYTES
from servers.release.sealed_releases import SealedRelease, releases
from servers.storage.campaigns import StoredCampaign
from servers.storage.entries import set_checksum
from servers.storage.waves import SEALED, UploadSet, Wave

Bytes = NDArray[np.uint8]
Index = NDArray[np.int64]


class AboutWave(Message):
    """A sealed wave, as one server has it."""

    number: int
    count: int
    checksum: Bytes32
    checked: Bytes32 | None  # the checksum of the set that was checked
    keys: Bytes32 | None  # the digest of this server's keys
    erased: bool

    @staticmethod
    def of(wave: Wave) -> "AboutWave":
        s = wave.sealed
        about = {"count": s.count, "checksum": s.checksum, "checked": s.checked, "keys": s.key_file}
        return AboutWave.model_validate({"number": wave.number, **about, "erased": wave.erased})


class About(Message):
    """Whose folder it is, and which waves are sealed there."""

    format: Literal["fss-ecdf audit 1"] = "fss-ecdf audit 1"
    server: Literal[0, 1]
    waves: list[AboutWave]


def wave_folder(folder: Path, number: int) -> Path:
    return folder / f"wave-{number}"


def check_folder(folder: Path, number: int, checked: str) -> Path:
    return wave_folder(folder, number) / f"check-{checked}"


def release_folder(folder: Path, name: ReleaseName) -> Path:
    return folder / f"release-{str(name).replace(' ', '-')}"


def release_name(folder: str) -> ReleaseName:
    """The release whose folder is called so."""
    try:
        return ReleaseName.parse(folder.removeprefix("release-").replace("-", " "))
    except ValueError as error:
        raise InvalidUpload(f"{folder} is not the folder of a release: {error}") from None


def signed_answers(folder: Path) -> Iterator[tuple[bytes, bytes]]:
    """Questions with their signed answers."""
    for path in sorted(folder.glob("*.answer")):
        yield path.with_suffix(".question").read_bytes(), path.read_bytes()


class Uploads:
    """Uploads of one wave as one server stores them: id, key, proof where keys are checked, the other share's hash."""

    def __init__(self, rows: Bytes, type: KeyType, contribution: Contribution) -> None:
        self._rows, self._type, self._contribution = rows, type, contribution

    @staticmethod
    def read(path: Path, campaign: Campaign, server: int, wave: int) -> "Uploads":
        data, width = np.fromfile(path, np.uint8), row_bytes(campaign)
        if data.size % width:
            raise Wrong(server, f"{path.name} does not hold whole uploads of {width} bytes")
        return Uploads(
            data.reshape(-1, width), campaign.key_type(server), Contribution(campaign.variable.scheme, wave=wave)
        )

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def entries(self) -> list[bytes]:
        """Of each its id and its leaf, computed from what is there: other keys have other leaves."""
        return [
            upload_id + self._contribution.opened_leaf(upload_id, opening, self._type.server)
            for upload_id, opening in self._split()
        ]

    def _split(self) -> Iterator[tuple[bytes, bytes]]:
        for row in self._rows:
            data = row.tobytes()
            yield data[:UPLOAD_ID_BYTES], data[UPLOAD_ID_BYTES:]

    def keys(self, which: Index | None = None) -> KeyBatch:
        rows = self._rows if which is None else self._rows[which]
        if not len(rows):
            return KeyBatch(self._type, np.empty((self._type.words, 0), np.uint64))
        key = rows[:, UPLOAD_ID_BYTES : UPLOAD_ID_BYTES + self._type.key_bytes]
        return KeyBatch.from_bytes(key.tobytes(), self._type.binder, expected=self._type)

    def proofs(self, which: Index) -> Proofs:
        start = UPLOAD_ID_BYTES + self._type.key_bytes
        return Proofs.from_bytes(self._rows[which, start : start + proof_bytes(self._type)].tobytes(), self._type)

    def and_those(self, other: "Uploads") -> "Uploads":
        """These, then those of the other."""
        return Uploads(np.concatenate([self._rows, other._rows]), self._type, self._contribution)

    def as_set(self, checked: bytes | None, tables: ExportedTables) -> UploadSet:
        """As the server that has these, with these tables, would have sealed and signed them."""
        digest = hashlib.sha256(file_header(self._type, len(self)))
        for row in self.keys().words:
            digest.update(np.ascontiguousarray(row).data)
        people = sum(one.people for one in tables.tables)
        entries = sorted([*self.entries, *tables.entries])
        about = set_checksum(b"".join(entries)), 0, checked, digest.digest()
        return UploadSet(len(self) + people, *about, len(tables.tables), people)


class Export:
    """What the audited server handed over."""

    def __init__(self, folder: Path, campaign: Campaign) -> None:
        self.folder, self.campaign = folder, campaign
        about = read(About, (folder / "about.json").read_bytes())
        self.server: int = about.server
        self.about = {wave.number: wave for wave in about.waves}
        first = 0 if campaign.waves is None else 1
        if list(self.about) != list(range(first, first + len(about.waves))) or (not first and len(about.waves) != 1):
            raise InvalidUpload("about.json does not name the first waves of this campaign, in their order")

    @property
    def kept(self) -> Path:
        return self.folder / "kept"

    @cached_property
    def uploads(self) -> dict[int, Uploads]:
        """Of every wave whose keys are not erased."""
        return {
            number: Uploads.read(wave_folder(self.folder, number) / "uploads", self.campaign, self.server, number)
            for number, wave in self.about.items()
            if not wave.erased
        }

    @cached_property
    def tables(self) -> dict[int, ExportedTables]:
        """Of every wave whose keys are not erased."""
        return {number: self._tables(number, "tables") for number, wave in self.about.items() if not wave.erased}

    def rejected_tables(self, number: int) -> ExportedTables:
        """Tables that failed the check of a wave and are not erased yet."""
        return self._tables(number, "rejected-tables")

    def _tables(self, number: int, name: str) -> ExportedTables:
        return ExportedTables(self.campaign, self.server, number, wave_folder(self.folder, number) / name)

    def rejected(self, number: int) -> Uploads:
        """What failed the check of a wave and is not erased yet."""
        return Uploads.read(wave_folder(self.folder, number) / "rejected", self.campaign, self.server, number)

    @cached_property
    def sets(self) -> dict[int, UploadSet]:
        """Every wave's set, made of the uploads that are handed over; of an erased one, what is said of it."""
        return {number: self._set(wave) for number, wave in self.about.items()}

    def _set(self, wave: AboutWave) -> UploadSet:
        if wave.erased:
            return UploadSet(wave.count, wave.checksum, 0, wave.checked, wave.keys)
        return self.uploads[wave.number].as_set(wave.checked, self.tables[wave.number])

    @cached_property
    def releases(self) -> dict[ReleaseName, SealedRelease]:
        """What these sets are released as."""
        waves = [Wave(k, SEALED, 0, True, 0, made, erased=self.about[k].erased) for k, made in self.sets.items()]
        return releases(StoredCampaign(self.campaign, None, b"", 0, 0), waves)

    def noise_secret(self, name: ReleaseName) -> bytes:
        text = (release_folder(self.folder, name) / "noise.secret").read_text()
        try:
            secret = bytes.fromhex(text)
        except ValueError:
            secret = b""
        if len(secret) != SEED_BYTES:
            raise InvalidUpload(f"noise.secret does not hold {SEED_BYTES} bytes in hexadecimal")
        return secret
