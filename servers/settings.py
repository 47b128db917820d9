"""Settings of one server: a TOML file, checked completely before anything starts.

Tokens stand here only as SHA-256 hashes. What a server must keep secret itself, its token for the other server, its
identity and its TLS key, are files that only the owner may read; or, where `secrets = "group"` says so, the group that
the process runs with, as in a Secret that Kubernetes mounts.
"""

import os
import stat
import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AnyHttpUrl, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from fss_ecdf.campaign.campaign import from_base64url
from fss_ecdf.campaign.commitments import SIGNING_KEY_BYTES
from fss_ecdf.campaign.noise.mechanism import CURVE_BITS, MAX_CURVE_BITS
from fss_ecdf.cli.common import UsageError

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Hashes = Annotated[tuple[Hash, ...], Field(min_length=1, max_length=2), BeforeValidator(lambda v: _several(v))]
SigningKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$")]
PathField = Annotated[Path, BeforeValidator(lambda v: Path(v) if isinstance(v, str) else v)]
Url = Annotated[AnyHttpUrl, Field(strict=False)]


def _several(value: object) -> object:
    """One alone, or a list."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Tls(_Section):
    certificate: PathField
    key: PathField


class Peer(_Section):
    """The other server: where it is, whose certificate it must show, and how we prove who we are."""

    url: Url
    ca: PathField
    token_file: PathField
    timeout_s: float = Field(default=20.0, gt=0, le=600)


class Tokens(_Section):
    """SHA-256 hashes of the tokens that callers must present, and the key by which the other server signs.

    One, or while a token is exchanged two: the new one and the old one.
    """

    operator: Hashes
    analyst: Hashes
    peer: Hashes
    peer_signing_key: SigningKey


class Limits(_Section):
    body_bytes: int = Field(default=16 << 20, ge=1 << 16, le=1 << 32)
    receive_timeout_s: float = Field(default=60.0, gt=0, le=3600)
    body_bytes_per_s: int = Field(default=1024, ge=1)  # after the first seconds
    bytes_in_flight: int = Field(default=64 << 20, ge=1 << 16)
    bytes_per_token: int = Field(default=32 << 20, ge=1 << 16)
    bytes_per_address: int = Field(default=16 << 20, ge=1 << 16)
    connections_per_address: int = Field(default=512, ge=1)
    rows_per_request: int = Field(default=10_000, ge=1, le=1_000_000)
    uploads_per_s: int = Field(default=200_000, ge=1)
    evaluations: int = Field(default=4, ge=1, le=1000)
    evaluations_waiting: int = Field(default=64, ge=0, le=100_000)
    points_per_query: int = Field(default=10_000, ge=1, le=1_000_000)
    point_evaluations: int = Field(default=100_000_000, ge=1)  # of one question that is answered from the keys


class Metrics(_Section):
    """Where every process tells its metrics, if it does; `--metrics` names another address for one of several."""

    listen: str | None = Field(default=None, pattern=r"^[^:\s]+:\d{1,5}$")
    token: Hashes = ()

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        if self.listen is not None and not self.token:
            raise ValueError("metrics.listen needs metrics.token, the hash of the token to read them with")
        return self


class Cluster(_Section):
    """A Dask scheduler whose workers evaluate keys, and storage that they share with this server."""

    scheduler: str = Field(pattern=r"^(tls|tcp)://[^:/\s]+:\d{1,5}$")
    ca: PathField | None = None
    certificate: PathField | None = None
    key: PathField | None = None
    chunks: str | None = None  # s3://bucket/prefix, or a URL that fsspec knows; without one, beside the keys
    chunk_keys: int = Field(default=49_152, ge=64, le=1 << 24)

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        host = self.scheduler.split("//")[1].rsplit(":", 1)[0]
        given = [self.ca, self.certificate, self.key]
        if self.scheduler.startswith("tls:") and None in given:
            raise ValueError("cluster: tls:// needs ca, certificate and key")
        if self.scheduler.startswith("tcp:") and host not in ("127.0.0.1", "localhost"):
            raise ValueError("cluster.scheduler: whoever reaches it reads keys and runs programs; use tls://")
        return self

    @model_validator(mode="after")
    def _without_secrets(self) -> Self:
        if self.chunks is not None and "@" in urlsplit(self.chunks).netloc:
            raise ValueError("cluster.chunks: who asks is no part of the URL; put it into the environment")
        return self


class Settings(_Section):
    server: Literal[0, 1]
    listen: str = Field(pattern=r"^[^:\s]+:\d{1,5}$")
    data: PathField
    identity_file: PathField
    database: str | None = None
    workers: int = Field(default=0, ge=0, le=256)
    curve_bits: int = Field(default=CURVE_BITS, ge=0, le=MAX_CURVE_BITS)
    tls: Tls
    peer: Peer
    tokens: Tokens
    limits: Limits = Limits()
    metrics: Metrics = Metrics()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    secrets: Literal["owner", "group"] = "owner"
    cluster: Cluster | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        hashes = [*self.tokens.operator, *self.tokens.analyst, *self.tokens.peer, *self.metrics.token]
        if len(set(hashes)) != len(hashes):
            raise ValueError("tokens: operator, analyst, peer and metrics must have different tokens")
        if not 1 <= self.port <= 65535:
            raise ValueError(f"listen: {self.port} is not a port")
        if self.peer.url.scheme != "https":
            raise ValueError("peer.url: must be https")
        return self

    @property
    def host(self) -> str:
        return self.listen.rsplit(":", 1)[0]

    @property
    def port(self) -> int:
        return int(self.listen.rsplit(":", 1)[1])

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{self.data / 'server.db'}"

    @property
    def peer_signing_key(self) -> bytes:
        return from_base64url(self.tokens.peer_signing_key, SIGNING_KEY_BYTES, "tokens.peer_signing_key")

    @property
    def kept_files(self) -> list[Path]:
        """Files beside the settings that belong to a backup; the TLS key is where an organisation keeps its keys."""
        return [self.identity_file, self.peer.token_file, self.peer.ca, self.tls.certificate]

    def peer_token(self) -> str:
        return self.peer.token_file.read_text().strip()


def load(path: Path, *, listen: str | None = None, metrics: str | None = None) -> Settings:
    """Read and check a settings file; paths in it are relative to it. `listen` and `metrics` are other addresses."""
    try:
        fields = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    fields |= {} if listen is None else {"listen": listen}
    if metrics is not None:
        fields["metrics"] = {**fields.get("metrics", {}), "listen": metrics}
    try:
        settings = Settings.model_validate(fields)
    except ValidationError as error:
        raise UsageError(f"{path}: " + "; ".join(_explain(e) for e in error.errors())) from None
    settings = _absolute(settings, path.parent)
    _require_files(settings, path)
    return settings


def _require_files(settings: Settings, path: Path) -> None:
    """All are there, and nobody reads secrets who need not."""
    secrets = [settings.tls.key, settings.peer.token_file, settings.identity_file]
    others = [settings.tls.certificate, settings.peer.ca]
    if settings.cluster is not None:
        secrets += [] if settings.cluster.key is None else [settings.cluster.key]
        others += [path for path in (settings.cluster.ca, settings.cluster.certificate) if path is not None]
    for file in (*others, *secrets):
        if not file.is_file():
            raise UsageError(f"{path}: {file} does not exist")
    by_group = settings.secrets == "group"
    whom = "its owner and a group of this process only (chmod 440)" if by_group else "its owner only (chmod 600)"
    for secret in secrets:
        if is_exposed(secret, by_group=by_group):
            raise UsageError(f"{path}: {secret} must be readable by {whom}")
    if _has_password(settings) and is_exposed(path, by_group=by_group):
        raise UsageError(f"{path}: has the database's password in it, so it must be readable by {whom}")


def is_exposed(path: Path, *, by_group: bool) -> bool:
    """Can others than the owner use this file? `by_group`: a group of this process may read it, but not write."""
    about = path.stat()
    allowed = stat.S_IRGRP if by_group and about.st_gid in {os.getegid(), *os.getgroups()} else 0
    return bool(about.st_mode & (stat.S_IRWXG | stat.S_IRWXO) & ~allowed)


def _has_password(settings: Settings) -> bool:
    """In the URL; better in PostgreSQL's own password file, or none at all but a client certificate."""
    return settings.database is not None and urlsplit(settings.database).password is not None


def _explain(error: object) -> str:
    assert isinstance(error, dict)
    where = ".".join(str(part) for part in error["loc"])
    what = "unknown setting" if error["type"] == "extra_forbidden" else str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {what}" if where else what


def _absolute(settings: Settings, base: Path) -> Settings:
    tls, peer, cluster = settings.tls, settings.peer, settings.cluster
    if cluster is not None:
        files = {name: getattr(cluster, name) for name in ("ca", "certificate", "key")}
        cluster = cluster.model_copy(update={name: base / path for name, path in files.items() if path is not None})
    return settings.model_copy(
        update={
            "data": base / settings.data,
            "identity_file": base / settings.identity_file,
            "cluster": cluster,
            "tls": Tls(certificate=base / tls.certificate, key=base / tls.key),
            "peer": peer.model_copy(update={"ca": base / peer.ca, "token_file": base / peer.token_file}),
        }
    )
