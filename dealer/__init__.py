"""What a data owner runs: values become key pairs, and one key goes to each of two servers.

>>> import os
>>> from campaign.spec import Campaign
>>> campaign = Campaign.from_toml('''
... title = "Age"
... question = "How old are your patients?"
... epsilon = 1.0
... [grid]
... kind = "linear"
... values = "integer"
... from = 0
... to = 120
... ''', id=bytes(32))
>>> shared = share([41, 67, 130], campaign, rand=os.urandom)
>>> len(shared), shared.placed.clipped, shared.key_bytes
(3, 1, 192)

`upload` sends them: see `dealer.upload`.
"""

from dealer.share import Shared, share
from dealer.upload import Outcome, Sites, upload

__all__ = ["Outcome", "Shared", "Sites", "share", "upload"]
