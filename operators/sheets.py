"""The sheet that invites one site: everything it needs, on one page, with its token; so it is a secret."""

import hashlib
import re
import shlex
import ssl
from pathlib import Path

from campaign.spec import Campaign, to_base64url
from operators.remotes import Place

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def fingerprints(ca: Path) -> list[str]:
    """SHA-256 of each certificate in a file, as `openssl x509 -fingerprint -sha256` writes it."""
    found = [hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest() for pem in _PEM.findall(ca.read_text())]
    return [":".join(f"{byte:02X}" for byte in digest) for digest in found]


def file_name(label: str) -> str:
    return (re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") or "site")[:60]


def sheet(campaign: Campaign, places: list[Place], label: str, quota: int, token: str) -> str:
    name = to_base64url(campaign.id)
    addresses = [f"{place.url}/v1/campaigns/{name}" for place in places]
    marks = sorted({mark for place in places for mark in fingerprints(place.ca)})
    lines = [
        f"# Invitation of {label}",
        "",
        f"**{campaign.title}**: {campaign.question}",
        "",
        f"You may send up to {quota} values. Each is split on your machine into two keys, one for each server; neither",
        f"server can read it alone. Epsilon is {campaign.total_epsilon:g} for each person who gives at most "
        f"{campaign.max_instances} value{'s' * (campaign.max_instances > 1)}.",
        "This page holds a secret, the token: keep it like a password, and send it to nobody.",
        "",
        "| what | |",
        "| --- | --- |",
        *(f"| server {place.role} | {address} |" for place, address in zip(places, addresses, strict=True)),
        f"| token | {token} |",
        *(f"| fingerprint of the CA (SHA-256) | {mark} |" for mark in marks),
        f"| digest of the campaign | {to_base64url(campaign.digest)} |",
        "",
        "With this page you were sent the file `ca.pem`. Its fingerprints must be those above:",
        "",
        "    openssl x509 -in ca.pem -noout -fingerprint -sha256",
        "",
        "Then type, with your own file and column; the first command sends nothing and prints the digest, which must",
        "be the one above:",
        "",
        f"    export FSS_CAMPAIGN={shlex.quote(' '.join(addresses))}",
        "    export FSS_CA=ca.pem",
        f"    export FSS_UPLOAD_TOKEN={token}",
        "    fss-dealer upload --csv FILE --column NAME --dry-run",
        "    fss-dealer upload --csv FILE --column NAME",
        "",
        "Until the campaign is sealed you can take back what you sent: `fss-dealer withdraw`.",
    ]
    return "\n".join(lines) + "\n"
