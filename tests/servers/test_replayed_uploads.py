"""Whoever ends TLS for both servers and has a token of its own: nothing that it recorded comes back with that one."""

import numpy as np
import pytest

from campaign.envelopes import UPLOAD_HEADER_BYTES, UPLOAD_ID_BYTES
from campaign.sealed_uploads import seal_upload
from client.tokens import new_token
from harness.live import Pair, envelopes, name
from tests.servers.conftest import new_campaign


@pytest.mark.parametrize("held_back", [False, True])
def test_a_recording_of_what_was_withdrawn_is_not_stored_with_another_token(pair: Pair, held_back: bool) -> None:
    """Its party may have sent new keys since, and would count twice; also if the servers never saw the first ones."""
    campaign = new_campaign(admission="invited", min_uploads=1)
    party, attacker = new_token("invite"), new_token("invite")
    pair.create(campaign, invitations=[party, attacker])
    plain = envelopes(campaign, np.array([3]))
    recorded = [seal_upload(campaign, role, plain[role]) for role in (0, 1)]
    ids = plain[0][UPLOAD_HEADER_BYTES:][:UPLOAD_ID_BYTES]
    for role in (0, 1):
        if not held_back:
            assert pair.upload_sealed(role, campaign, recorded[role], party).json() == {"failures": []}
        with pair.client(role, party) as client:
            answer = client.post(f"/v1/campaigns/{name(campaign)}/uploads/withdraw", content=ids)
        assert answer.json() == {"withdrawn": int(not held_back), "failures": []}
        again = pair.upload_sealed(role, campaign, recorded[role], attacker)
        assert again.json()["type"].endswith("upload-withdrawn")
        assert pair.status(campaign, role)["uploads"] == 0


def test_what_an_attacker_stored_first_is_not_confirmed_as_withdrawn(pair: Pair) -> None:
    """It can keep its party from withdrawing, as any network can; but the party is told so, and sends no other keys."""
    campaign = new_campaign(admission="invited", min_uploads=1)
    party, attacker = new_token("invite"), new_token("invite")
    pair.create(campaign, invitations=[party, attacker])
    plain = envelopes(campaign, np.array([3]))[0]
    recorded, ids = seal_upload(campaign, 0, plain), plain[UPLOAD_HEADER_BYTES:][:UPLOAD_ID_BYTES]
    for token in (attacker, party):
        assert pair.upload_sealed(0, campaign, recorded, token).json() == {"failures": []}
    with pair.client(0, party) as client:
        answer = client.post(f"/v1/campaigns/{name(campaign)}/uploads/withdraw", content=ids).json()
    assert (answer["withdrawn"], [failure["code"] for failure in answer["failures"]]) == (0, ["campaign-full"])
