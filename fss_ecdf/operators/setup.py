"""Everything one server needs before it runs: settings, tokens, and for development a CA with certificates."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_bytes

import tomli_w
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.cli.common import UsageError
from fss_ecdf.net.server_identity import SECRET_BYTES, Identity
from fss_ecdf.net.tokens import hash_token, new_token

DEVELOPMENT_DAYS = 365


def write_secret(path: Path, text: str) -> None:
    """A file that only its owner can read, from its first byte on."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text)


@dataclass(frozen=True)
class PeerCredentials:
    """What one server's operator gives the other's, and may show to anybody."""

    hash: str  # of the token by which it calls
    signing_key: str


@dataclass(frozen=True, repr=False)
class Secrets:
    """What a server proves to others who it is with."""

    peer_token: str
    identity: bytes

    @staticmethod
    def new() -> "Secrets":
        return Secrets(new_token("peer"), token_bytes(SECRET_BYTES))

    def introduction(self, role: int) -> PeerCredentials:
        return PeerCredentials(hash_token(self.peer_token), to_base64url(Identity(self.identity, role).signing_key))


@dataclass(frozen=True)
class CreatedServer:
    """What `init` made: where it is, and the tokens to hand out."""

    folder: Path
    operator: str
    analyst: str
    peer_hash: str
    signing_key: str


def init(
    folder: Path,
    *,
    server: int,
    listen: str,
    peer_url: str,
    known: PeerCredentials | None,
    secrets: Secrets | None = None,
    url: str | None = None,
) -> CreatedServer:
    """Write settings and tokens of one server into a new folder."""
    secrets = secrets or Secrets.new()
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; a server's settings are never overwritten")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    operator, analyst, metrics = new_token("operator"), new_token("analyst"), new_token("metrics")
    mine = secrets.introduction(server)
    write_secret(folder / "peer.token", secrets.peer_token + "\n")
    write_secret(folder / "identity.secret", secrets.identity.hex() + "\n")
    write_secret(folder / "operator.token", operator + "\n")
    write_secret(folder / "analyst.token", analyst + "\n")
    write_secret(folder / "metrics.token", metrics + "\n")
    settings = {
        "server": server,
        "listen": listen,
        "data": "data",
        "identity_file": "identity.secret",
        "tls": {"certificate": "cert.pem", "key": "key.pem"},
        "metrics": {"token": hash_token(metrics)},
        "peer": {"url": peer_url, "ca": "peer-ca.pem", "token_file": "peer.token"},
        "tokens": {"operator": hash_token(operator), "analyst": hash_token(analyst)}
        | ({"peer": known.hash, "peer_signing_key": known.signing_key} if known else {}),
    }
    missing = "" if known else "# peer and peer_signing_key, as the other server's init printed them\n"  # in [tokens]
    head = (
        f"# Settings of server {server}. Paths are relative to this file. Tokens stand here as SHA-256 hashes only.\n"
    )
    write_secret(folder / "server.toml", head + tomli_w.dumps(settings) + missing)
    if url is not None:
        own = {"server": server, "url": url, "ca": "cert.pem", "token_file": "operator.token"}
        about = {"server": [own], "peer": {"url": peer_url, "ca": "peer-ca.pem"}}
        write_secret(folder / "operator.toml", "# For fss-server campaign: your server, and where the other one is.\n")
        with (folder / "operator.toml").open("a") as file:
            file.write(tomli_w.dumps(about))
    return CreatedServer(folder, operator, analyst, mine.hash, mine.signing_key)


def init_pair(
    folder: Path, hosts: tuple[str, str], ports: tuple[int, int], identities: Sequence[bytes] = ()
) -> list[CreatedServer]:
    """Two servers that trust each other, with a development CA of their own.

    A host that is an address is listened on; one that is a name (of a container, say) is listened for everywhere.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; choose a new folder")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = _Authority()
    (folder / "ca.pem").write_bytes(authority.certificate_pem)
    both = [replace(Secrets.new(), identity=given) for given in identities] or [Secrets.new(), Secrets.new()]
    urls = [f"https://{host}:{port}" for host, port in zip(hosts, ports, strict=True)]
    servers = []
    for role in (0, 1):
        server = init(
            folder / f"server{role}",
            server=role,
            listen=f"{hosts[role] if _is_address(hosts[role]) else '0.0.0.0'}:{ports[role]}",  # noqa: S104
            peer_url=urls[1 - role],
            known=both[1 - role].introduction(1 - role),
            secrets=both[role],
        )
        certificate, key = authority.issue(hosts[role])
        (server.folder / "data").mkdir(mode=0o700)
        (server.folder / "cert.pem").write_bytes(certificate)
        write_secret(server.folder / "key.pem", key.decode())
        (server.folder / "peer-ca.pem").write_bytes(authority.certificate_pem)
        servers.append(server)
    entries = [
        {"url": url, "ca": "ca.pem", "token_file": f"server{role}/operator.token"} for role, url in enumerate(urls)
    ]
    tables = ["[[server]]\n" + tomli_w.dumps(entry) for entry in entries]
    write_secret(folder / "operator.toml", "# For fss-server campaign: both servers, in order.\n" + "\n".join(tables))
    return servers


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class _Authority:
    """A certificate authority that lives for one call; its key is never written."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fss-ecdf development CA")])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self._certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate_pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=DEVELOPMENT_DAYS))
        )

    def issue(self, host: str) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName("localhost")]
        names.append(x509.IPAddress(ipaddress.ip_address(host)) if _is_address(host) else x509.DNSName(host))
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]), key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(authority, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return (
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(serialization.Encoding.PEM, *form),
        )
