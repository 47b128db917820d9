"""What a data owner runs: values become key pairs, and one key goes to each of two servers.

>>> import os
>>> from campaign.spec import Campaign
>>> from dealer import share
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
(3, 1, 232)

`upload` sends values, and `withdraw` takes them back: see `dealer.sending`.
"""

from typing import TYPE_CHECKING

from client.late import late

if TYPE_CHECKING:
    from dealer.sending import Outcome, upload, withdraw
    from dealer.sharing import Shared, share
    from dealer.sites import Sites

__all__ = ["Outcome", "Shared", "Sites", "share", "upload", "withdraw"]

__getattr__ = late(
    __name__,
    {
        "Outcome": "dealer.sending",
        "Shared": "dealer.sharing",
        "Sites": "dealer.sites",
        "share": "dealer.sharing",
        "upload": "dealer.sending",
        "withdraw": "dealer.sending",
    },
)
