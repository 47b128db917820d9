"""The party's page: one self-contained file, the same bytes for the same campaign at the same addresses."""

import base64
import hashlib
import html
import json
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

from campaign.errors import InvalidCampaign, InvalidInput
from campaign.spec import Campaign, to_base64url
from client import https
from web.join import joined

HERE = Path(__file__).parent
PARTY = HERE / "party"


def source_hash(text: str) -> str:
    """As a content security policy names a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def in_script(value: object) -> str:
    """JSON that ends no script element."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True).replace("<", "\\u003c")


def party_page(campaign: Campaign, urls: list[str]) -> str:
    """The page for a campaign whose addresses at server 0 and 1 these are."""
    if campaign.scheme != "dcf":
        raise InvalidCampaign(f"the page makes keys of scheme dcf only; this campaign has {campaign.scheme}")
    if campaign.kem != "x25519":
        raise InvalidCampaign(
            f"browsers cannot encrypt with {campaign.kem}, which this campaign requires: parties use fss-dealer"
        )
    name = to_base64url(campaign.id)
    for url in urls:
        if not https.is_address(url) or urlsplit(url).path.rpartition("/")[2] != name:
            raise InvalidInput(https.NOT_AN_ADDRESS.format(url))
    origins = ["https://" + urlsplit(url).netloc for url in urls]
    if len(set(origins)) != 2 or any(set(origin) & set(" ;,'\"<>&") for origin in origins):
        raise InvalidInput("a campaign lives at two servers with two addresses")
    script, style = joined(PARTY / "main.js"), (HERE / "base.css").read_text() + (PARTY / "party.css").read_text()
    about = {"urls": urls, "digest": to_base64url(campaign.digest), "campaign": campaign.canonical.decode()}
    return Template((PARTY / "party.html").read_text()).substitute(
        policy=policy(script, style, origins),
        title=html.escape(campaign.title),
        style=style,
        script=script,
        about=in_script(about),
    )


def policy(script: str, style: str, origins: list[str]) -> str:
    """Nothing may be reached but the two servers; nothing runs but this script, and itself again as a worker."""
    rules = {
        "default-src": "'none'",
        "script-src": source_hash(script),
        "style-src": source_hash(style),
        "worker-src": "blob:",
        "connect-src": " ".join(origins),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())
