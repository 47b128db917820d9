"""Whoever ends TLS for both servers and has a token of its own: nothing that it recorded is stored with that one."""

import numpy as np
import pytest

from fss_ecdf.campaign.binary_messages import UPLOAD_HEADER_BYTES, UPLOAD_ID_BYTES
from fss_ecdf.campaign.sealed_uploads import seal_upload
from fss_ecdf.net.tokens import new_token
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign


@pytest.mark.parametrize("held_back", [False, True])
def test_a_recording_of_what_was_withdrawn_is_not_stored_with_another_token(pair: LivePair, held_back: bool) -> None:
    """Its party may have sent new keys since, and would count twice; also if the servers never saw the first ones."""
    campaign = new_campaign(admission="invited", min_uploads=1)
    party, attacker = new_token("invite"), new_token("invite")
    pair.create(campaign, invitations=[party, attacker])
    plain = envelopes(campaign, np.array([3]))
    recorded = [seal_upload(campaign, role, plain[role], party) for role in (0, 1)]
    ids = plain[0][UPLOAD_HEADER_BYTES:][:UPLOAD_ID_BYTES]
    for role in (0, 1):
        if not held_back:
            assert pair.upload_sealed(role, campaign, recorded[role], party).json()["failures"] == []
        with pair.client(role, party) as client:
            answer = client.post(f"/v1/campaigns/{name(campaign)}/uploads/withdraw", content=ids)
        assert (answer.json()["withdrawn"], answer.json()["failures"]) == (int(not held_back), [])
        again = pair.upload_sealed(role, campaign, recorded[role], attacker)
        assert again.json()["type"].endswith("unreadable-upload")
        for token in (party, attacker):  # not even if somebody encrypted it anew
            assert pair.upload(role, campaign, plain[role], token).json()["type"].endswith("upload-withdrawn")
        assert pair.status(campaign, role)["uploads"] == 0


@pytest.mark.parametrize("many", [1, 100])
def test_an_attacker_cannot_store_a_recording_under_its_own_token(pair: LivePair, many: int) -> None:
    """Before its party's request, so that this one would be a retry and its party could not withdraw it.

    Long requests are refused by their first upload.
    """
    campaign = new_campaign(admission="invited", min_uploads=1, max_values_per_person=many)
    party, attacker = new_token("invite"), new_token("invite")
    pair.create(campaign, invitations=[party, attacker])
    plain = envelopes(campaign, np.arange(many) % 10)[0]
    recorded = seal_upload(campaign, 0, plain, party)
    ids = b"".join(row[:UPLOAD_ID_BYTES] for row in _rows(plain, many))
    refused = pair.upload_sealed(0, campaign, recorded, attacker)
    assert refused.json()["type"].endswith("unreadable-upload")
    assert pair.status(campaign)["uploads"] == 0
    assert pair.upload_sealed(0, campaign, recorded, party).json()["failures"] == []
    with pair.client(0, party) as client:
        answer = client.post(f"/v1/campaigns/{name(campaign)}/uploads/withdraw", content=ids).json()
    assert (answer["withdrawn"], answer["failures"]) == (many, [])


def _rows(plain: bytes, many: int) -> list[bytes]:
    size = (len(plain) - UPLOAD_HEADER_BYTES) // many
    return [plain[UPLOAD_HEADER_BYTES + size * i :][:size] for i in range(many)]
