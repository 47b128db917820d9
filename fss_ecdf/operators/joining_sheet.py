"""The sheet that invites one site: everything it needs, on one page, with its token; so it is a secret."""

import hashlib
import re
import shlex
import ssl
from pathlib import Path

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.operators.servers import ServerAddress

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def fingerprints(ca: Path) -> list[str]:
    """SHA-256 of each certificate in a file, as `openssl x509 -fingerprint -sha256` writes it."""
    found = [hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest() for pem in _PEM.findall(ca.read_text())]
    return [":".join(f"{byte:02X}" for byte in digest) for digest in found]


def authority_name(place: ServerAddress) -> str:
    """The file with a server's certificate authority, beside the sheets."""
    return f"ca{place.server}.pem"


def file_name(label: str) -> str:
    return (re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") or "site")[:60]


def render(campaign: Campaign, places: list[ServerAddress], label: str, quota: int, token: str) -> str:
    name = to_base64url(campaign.id)
    addresses = [f"{place.url}/v1/campaigns/{name}" for place in places]
    own = [place for place in places if place.ca is not None]
    digest = to_base64url(campaign.digest)
    lines = [
        f"# Invitation of {label}",
        "",
        f"**{campaign.title}**: {campaign.question}",
        "",
        f"You may send up to {quota} values. Each is split on your machine into two keys, one for each server; neither",
        f"server can read it alone. Epsilon is {campaign.total_epsilon:g} for each person who gives at most "
        f"{campaign.max_values_per_person} value{'s' * (campaign.max_values_per_person > 1)}.",
        "This page holds a secret, the token: keep it like a password, and send it to nobody.",
        "",
        "| what | |",
        "| --- | --- |",
        *(f"| server {place.server} | {address} |" for place, address in zip(places, addresses, strict=True)),
        f"| token | {token} |",
        *(f"| fingerprint of {authority_name(p)} (SHA-256) | {mark} |" for p in own for mark in _fingerprints(p)),
        f"| digest of the campaign | {digest} |",
        "",
        *_about_authorities(own),
        "Type this, with your own file and column. The first command sends nothing. The second encrypts each key, so",
        "that only the server it is for can read it, and sends nothing to a campaign with another digest:",
        "",
        f"    export FSS_CAMPAIGN_URLS={shlex.quote(' '.join(addresses))}",
        f"    export FSS_CAMPAIGN_DIGEST={digest}",
        *(f"    export FSS_CA{place.server}={authority_name(place)}" for place in own),
        f"    export FSS_UPLOAD_TOKEN={token}",
        "    fss-dealer upload --file FILE --column NAME --dry-run",
        "    fss-dealer upload --file FILE --column NAME",
        "",
        "Until the campaign is sealed you can take back what you sent: `fss-dealer withdraw`.",
    ]
    return "\n".join(lines) + "\n"


def _fingerprints(place: ServerAddress) -> list[str]:
    return [] if place.ca is None else fingerprints(place.ca)


def _about_authorities(own: list[ServerAddress]) -> list[str]:
    """How to check the files that come with the sheet, where the system does not know the servers' authorities."""
    if not own:
        return []
    files = " and ".join(f"`{authority_name(place)}`" for place in own)
    commands = [f"    openssl x509 -in {authority_name(place)} -noout -fingerprint -sha256" for place in own]
    return [f"With this page you were sent {files}. The fingerprints must be those above:", "", *commands, ""]
