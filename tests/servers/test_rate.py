"""The rate of uploads: whoever announces much, or sends much, makes nobody else wait."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from fss_ecdf.campaign.errors import TooManyRequests
from servers.api.limits import Rate
from tests.harness import attacks
from tests.harness.attacks import MINE, OTHERS
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign

PER_S = 1000
ROWS = 10_000


def test_headers_and_withdrawals_of_one_party_lock_nobody_out(tmp_path: Path) -> None:
    """All parties of an open campaign have one token. Some hundred bytes that announce ten thousand uploads, and ids of
    uploads that were never made, took the whole rate of that token, and all that the server takes, for seconds."""
    with LivePair(tmp_path, limits__uploads_per_s=str(PER_S)) as pair:
        campaign, other = new_campaign(), new_campaign()
        for one in (campaign, other):
            pair.create(one)
        begin = attacks.long_begin(pair, campaign, ROWS)[:-1]  # the header, and not even the first upload
        head = attacks.upload_head(pair, campaign, attacks.announced(campaign, ROWS))
        for _ in range(3):
            with closing(attacks.connect(pair, source=MINE)) as connection:
                connection.sendall(head + begin)
                for one in (campaign, other):
                    assert attacks.watch(pair, one, 3, OTHERS).statuses == {200}
        with pair.client(0, pair.upload_tokens[campaign.id]) as client:  # from the attacker's address
            withdrawn = client.post(f"/v1/campaigns/{name(campaign)}/uploads/withdraw", content=bytes(16 * 1000))
            assert withdrawn.status_code == 200
            assert client.post(f"/v1/campaigns/{name(campaign)}/uploads/withdraw", content=bytes(16)).status_code == 429
        assert attacks.send(pair, campaign, envelopes(campaign, np.arange(1))[0], MINE)[0] == 429
        for one in (campaign, other):
            assert attacks.watch(pair, one, 3, OTHERS).statuses == {200}


def test_a_long_request_is_waited_for_by_who_sent_it() -> None:
    now = [0.0]
    rate = Rate(PER_S, lambda: now[0])
    for _ in range(5):
        rate.require(ROWS, "a")  # announced, and never sent
    rate.take(ROWS, "a")
    for _ in range(int(PER_S / 2)):
        rate.take(1, "b")
    with pytest.raises(TooManyRequests):
        rate.take(1, "c")  # the server's whole rate is taken, half of it by each
    now[0] = 1.0
    rate.take(1, "c")
    with pytest.raises(TooManyRequests) as refused:
        rate.take(1, "a")
    assert refused.value.retry_after == 19  # its own ten thousand, at its own five hundred a second
    now[0] = ROWS / (PER_S / 2)
    rate.take(1, "a")
