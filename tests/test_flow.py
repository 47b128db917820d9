"""The whole protocol on one page: parties, two servers, an analyst. No network; every line is real code."""

import hashlib
import os
import secrets

import numpy as np

from fss import dcf, field
from fss_ecdf.campaign.campaign import Campaign
from servers.release.noise import NoiseTree, covers


def test_the_protocol() -> None:
    # Everybody agrees on a campaign.
    campaign = Campaign.from_toml(
        """
        title = "Waiting time"
        question = "How many days did your patient wait?"
        epsilon = 1.0
        strata = ["public", "private"]
        [[variables]]
        name = "waiting time"
        [variables.grid]
        kind = "linear"
        values = "integer"
        from = 0
        to = 365
        """,
        id=secrets.token_bytes(32),
    )

    # 3000 parties turn their values into key pairs and send one key to each server.
    rng = np.random.default_rng(1)
    waited, clinic = rng.gamma(3, 30, 3000).astype(int), rng.choice(campaign.strata, 3000)
    positions = campaign.to_positions(waited.tolist(), clinic.tolist()).positions
    rand = os.urandom(3000 * dcf.RAND_BYTES)
    keys = dcf.gen(positions, bits=campaign.bits, binder=campaign.id, rand=rand)

    # Each server sums its keys over the whole domain and adds its own noise before anything leaves it.
    # The noise is bound to all that it covers: campaign, variable, the ids that both servers have, this server's keys.
    seeds, key_set = [os.urandom(32), os.urandom(32)], hashlib.sha256(b"the ids of the uploads").digest()
    covered = [
        covers(campaign.id, campaign.variable.name, key_set, hashlib.sha256(k.to_bytes()).digest()) for k in keys
    ]
    trees = [NoiseTree(seeds[s], server=s, covers=covered[s], mechanism=campaign.noise) for s in (0, 1)]
    noised = [
        field.add(dcf.sum_over_domain(k), field.encode(tree.curve())) for k, tree in zip(keys, trees, strict=True)
    ]

    # The asked server adds the two noised shares: the published curve.
    published = field.decode(field.add(noised[0], noised[1]))

    # An analyst reads how many private patients waited at most 60 days, with the error of the answer.
    private = campaign.stratum("private")
    at, before = campaign.position(private, np.array([60, -1]))
    count = published[at] - published[before]
    error = np.sqrt(2 * campaign.noise.difference_variance(at, before))
    truth = int(((clinic == "private") & (waited <= 60)).sum())
    assert abs(count - truth) < 8 * error

    # Nothing else is in the answer: without both noises it is exact.
    noise = trees[0].curve() + trees[1].curve()
    assert count - (noise[at] - noise[before]) == truth
