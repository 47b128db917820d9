"""The file of a set's keys: the same bytes whatever the parts in which its rows come; complete, or not there at all."""

from pathlib import Path

import numpy as np
import pytest

from fss import KeyBatch, proof_file
from fss_ecdf.campaign.binary_messages import Row, upload_rows
from fss_ecdf.campaign.contribution import HASH_BYTES
from servers.storage.entries import set_checksum
from servers.storage.key_files import Expected, NotTheSealedSet, file_digest, write_keys
from tests.harness.server_pair import envelopes
from tests.servers.conftest import new_campaign

CAMPAIGN = new_campaign(check_keys=True)
TYPE = CAMPAIGN.key_type(0)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return sorted(upload_rows(envelopes(CAMPAIGN, np.arange(50) % 7)[0], CAMPAIGN, 0)[1])


def expected(rows: list[Row]) -> Expected:
    return Expected(TYPE, len(rows), set_checksum(b"".join(i + leaf for i, leaf, _ in rows)))


def silent(_: int) -> None: ...


@pytest.mark.parametrize("size", [1, 7, 50])
@pytest.mark.parametrize("with_proofs", [True, False])
def test_parts_do_not_matter_and_one_may_be_empty(
    rows: list[Row], tmp_path: Path, size: int, with_proofs: bool
) -> None:
    """All keys of a part may have been rejected."""
    parts = [rows[:size], [], *(rows[start : start + size] for start in range(size, len(rows), size)), []]
    proofs = tmp_path / "proofs" if with_proofs else None
    digest = write_keys(tmp_path / "keys", parts, expected(rows), silent, proofs=proofs)
    assert digest == file_digest(tmp_path / "keys")
    keys = KeyBatch.open(tmp_path / "keys", TYPE.binder, expected=TYPE)
    assert keys.to_bytes() == b"".join(key[: TYPE.key_bytes] for _, _, key in rows)
    if proofs is not None:
        assert proof_file.is_whole(proofs)
        kept = proof_file.open_proofs(proofs, TYPE)
        assert kept.to_bytes() == b"".join(opening[TYPE.key_bytes : -HASH_BYTES] for _, _, opening in rows)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [slice(1, None), slice(0, -1), slice(None, None, -1)])
def test_other_rows_leave_nothing_behind(rows: list[Row], tmp_path: Path, wrong: slice) -> None:
    with pytest.raises(NotTheSealedSet):
        write_keys(tmp_path / "keys", [rows[wrong]], expected(rows), silent, proofs=tmp_path / "proofs")
    with pytest.raises(NotTheSealedSet):
        write_keys(tmp_path / "keys", [rows, rows[:1]], expected(rows), silent)
    (a, b, *_), keys = rows, [key for _, _, key in rows]
    uneven = [(*a[:2], keys[0][:-8]), (*b[:2], keys[1] + bytes(8)), *rows[2:-1], (*rows[-1][:2], b"")]
    with pytest.raises(NotTheSealedSet):
        write_keys(tmp_path / "keys", [uneven], expected(rows), silent)
    assert not list(tmp_path.iterdir())
