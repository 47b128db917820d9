"""The certificate that a server shows: whether it can be used, before it is."""

import ssl
from datetime import datetime
from pathlib import Path

from cryptography import x509

from fss_ecdf.cli.common import UsageError
from servers.settings import Tls


def expiry(path: Path) -> datetime:
    """When the first certificate of a file ends. Raises ValueError."""
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc


def require_usable(tls: Tls, now: datetime) -> None:
    """Raises BadSettings: not a certificate, not of this key, ended, or not begun."""
    try:
        shown = x509.load_pem_x509_certificate(tls.certificate.read_bytes())
    except ValueError:
        raise UsageError(f"{tls.certificate} is not a certificate in PEM") from None
    if shown.not_valid_after_utc <= now:
        when = shown.not_valid_after_utc.strftime("%Y-%m-%d %H:%M")
        raise UsageError(
            f"{tls.certificate}: the certificate ended on {when} UTC, and nobody would accept it; renew it"
        )
    if shown.not_valid_before_utc > now:
        when = shown.not_valid_before_utc.strftime("%Y-%m-%d %H:%M")
        raise UsageError(f"{tls.certificate}: the certificate begins on {when} UTC; is this machine's clock right?")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key)
    except (ssl.SSLError, OSError):
        raise UsageError(f"{tls.key} is not the key of the certificate in {tls.certificate}") from None
