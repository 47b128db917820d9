"""What a data owner runs: values become key pairs, and one key goes to each of two servers.

>>> import os
>>> from fss_ecdf.campaign.campaign import Campaign
>>> from dealer import make_keys
>>> campaign = Campaign.from_toml('''
... title = "Age"
... question = "How old are your patients?"
... epsilon = 1.0
... [[variables]]
... name = "age"
... [variables.grid]
... kind = "linear"
... values = "integer"
... from = 0
... to = 120
... ''', id=bytes(32))
>>> shared = make_keys([41, 67, 130], campaign, rand=os.urandom)
>>> len(shared), shared.placed.clipped, shared.key_bytes
(3, 1, 232)

`upload` sends values, and `withdraw` takes them back: see `dealer.upload_client`.
"""

from typing import TYPE_CHECKING

from fss_ecdf.net.lazy_imports import lazy_exports

if TYPE_CHECKING:
    from dealer.key_pairs import KeyPairs, make_keys
    from dealer.servers import ServerPair
    from dealer.upload_client import UploadResult, upload, withdraw

__all__ = ["KeyPairs", "ServerPair", "UploadResult", "make_keys", "upload", "withdraw"]

__getattr__ = lazy_exports(
    __name__,
    {
        "UploadResult": "dealer.upload_client",
        "KeyPairs": "dealer.key_pairs",
        "ServerPair": "dealer.servers",
        "make_keys": "dealer.key_pairs",
        "upload": "dealer.upload_client",
        "withdraw": "dealer.upload_client",
    },
)
