"""Everything one server needs before it runs: settings, tokens, and for development a CA with certificates."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import tomli_w
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from client.program import BadSettings
from client.tokens import hash_token, new_token

DEVELOPMENT_DAYS = 365


def write_secret(path: Path, text: str) -> None:
    """A file that only its owner can read, from its first byte on."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text)


@dataclass(frozen=True)
class Server:
    """What `init` made: where it is, and the tokens to hand out."""

    folder: Path
    operator: str
    analyst: str
    peer_hash: str


def init(
    folder: Path, *, role: int, listen: str, peer_url: str, peer_hash: str | None, peer_token: str | None = None
) -> Server:
    """Write settings and tokens of one server into a new folder."""
    if folder.exists() and any(folder.iterdir()):
        raise BadSettings(f"{folder} is not empty; a server's settings are never overwritten")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    operator, analyst = new_token("operator"), new_token("analyst")
    mine = peer_token or new_token("peer")
    write_secret(folder / "peer.token", mine + "\n")
    write_secret(folder / "operator.token", operator + "\n")
    write_secret(folder / "analyst.token", analyst + "\n")
    settings = {
        "role": role,
        "listen": listen,
        "data": "data",
        "tls": {"certificate": "cert.pem", "key": "key.pem"},
        "peer": {"url": peer_url, "ca": "peer-ca.pem", "token_file": "peer.token"},
        "tokens": {"operator": hash_token(operator), "analyst": hash_token(analyst)}
        | ({"peer": peer_hash} if peer_hash else {}),
    }
    missing = "" if peer_hash else '# peer = "the hash that the other server\'s init printed"\n'  # goes into [tokens]
    head = f"# Settings of server {role}. Paths are relative to this file. Tokens stand here as SHA-256 hashes only.\n"
    write_secret(folder / "server.toml", head + tomli_w.dumps(settings) + missing)
    return Server(folder, operator, analyst, hash_token(mine))


def init_pair(folder: Path, hosts: tuple[str, str], ports: tuple[int, int]) -> list[Server]:
    """Two servers that trust each other, with a development CA of their own.

    A host that is an address is listened on; one that is a name (of a container, say) is listened for everywhere.
    """
    if folder.exists() and any(folder.iterdir()):
        raise BadSettings(f"{folder} is not empty; choose a new folder")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = _Authority()
    (folder / "ca.pem").write_bytes(authority.certificate_pem)
    peer_tokens = [new_token("peer"), new_token("peer")]
    urls = [f"https://{host}:{port}" for host, port in zip(hosts, ports, strict=True)]
    servers = []
    for role in (0, 1):
        server = init(
            folder / f"server{role}",
            role=role,
            listen=f"{hosts[role] if _is_address(hosts[role]) else '0.0.0.0'}:{ports[role]}",  # noqa: S104
            peer_url=urls[1 - role],
            peer_hash=hash_token(peer_tokens[1 - role]),
            peer_token=peer_tokens[role],
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
