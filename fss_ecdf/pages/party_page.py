"""The party's page: one self-contained file, the same bytes for the same campaign at the same addresses."""

import base64
import hashlib
import html
import json
import re
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import InvalidCampaign, InvalidInput
from fss_ecdf.campaign.text import check_text
from fss_ecdf.net import https
from fss_ecdf.pages.bundle import bundle

HERE = Path(__file__).parent
PARTY = HERE / "party"


def source_hash(text: str) -> str:
    """As a content security policy names a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def in_script(value: object) -> str:
    """JSON that ends no script element."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True).replace("<", "\\u003c")


MOST_BYTES = 160_000


def party_page(campaign: Campaign, urls: list[str], *, organiser: str = "", contact: str = "") -> str:
    """The page for a campaign whose addresses at server 0 and 1 these are; who organises it stands on the page only."""
    if campaign.variable.cells:
        raise InvalidCampaign(
            "the page asks for a number on a grid: where there are categories or missing values, parties use fss-dealer"
        )
    if campaign.variable.scheme != "dcf":
        raise InvalidCampaign(f"the page makes keys of scheme dcf only; this campaign has {campaign.variable.scheme}")
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
    script, style = bundle(PARTY / "main.js", is_lean=True), _lean_style(HERE / "base.css", PARTY / "party.css")
    about = {"urls": urls, "digest": to_base64url(campaign.digest), "campaign": campaign.canonical.decode()}
    about |= {name: check_text(text) for name, text in (("organiser", organiser), ("contact", contact)) if text}
    return Template((PARTY / "party.html").read_text()).substitute(
        policy=policy(script, style, origins),
        title=html.escape(campaign.title),
        style=style,
        script=script,
        about=in_script(about),
    )


def _lean_style(*sheets: Path) -> str:
    """One rule a line, without comments and without blanks that mean nothing."""
    text = re.sub(r"/\*.*?\*/", "", "".join(sheet.read_text() for sheet in sheets), flags=re.DOTALL)
    for long, short in (
        (r"\n\s*", " "),
        (" {", "{"),
        (": ", ":"),
        ("; ", ";"),
        ("{ ", "{"),
        (", ", ","),
        (";}", "}"),
        ("} ", "}\n"),
    ):
        text = re.sub(long, short, text)
    return text


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
