"""`fss-server tokens rotate`: a new token in place of one that was lost, seen by others or is old; nobody is kept out.

At first both are accepted, then (`--finish`) only the new one. The server's own token for the other one, `peer`, is
known there by its hash: the new one waits beside the old until the other operator accepts it.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from fss_ecdf.campaign.files import write_durably
from fss_ecdf.cli.common import UsageError
from fss_ecdf.net.tokens import hash_token, new_token
from servers.settings import Settings, load


@dataclass(frozen=True)
class Rotated:
    """Where the new token is, and what others know it by."""

    path: Path
    hashes: tuple[str, ...]  # that are accepted now, the new one first


def rotate(kind: str, config: Path) -> Rotated:
    """Make a new token; the old one is good until `finish`."""
    settings, token = load(config), new_token(kind)
    digest = hash_token(token)
    if kind == "peer":
        path = next_file(settings)
        if path.exists():
            raise UsageError(f"{path} waits already; fss-server tokens rotate peer --finish puts it into place")
        write_durably(path, f"{token}\n".encode())
        return Rotated(path, (digest, hash_token(settings.peer_token())))
    known = _known(settings, kind)
    if len(known) > 1:
        raise UsageError(f"two {kind} tokens are accepted already; fss-server tokens rotate {kind} --finish first")
    path = config.parent / f"{kind}.token"
    _write_hashes(config, kind, (digest, known[0]))
    write_durably(path, f"{token}\n".encode())
    return Rotated(path, (digest, known[0]))


def finish(kind: str, config: Path) -> Rotated:
    """The old token opens nothing any more; of `peer`, the new one is shown from now on."""
    settings = load(config)
    if kind == "peer":
        path = next_file(settings)
        if not path.exists():
            raise UsageError("no new token waits; fss-server tokens rotate peer makes one")
        token = path.read_text().strip()
        write_durably(settings.peer.token_file, f"{token}\n".encode())
        path.unlink()
        return Rotated(settings.peer.token_file, (hash_token(token),))
    known = _known(settings, kind)
    if len(known) == 1:
        raise UsageError(f"only one {kind} token is accepted; there is nothing to finish")
    _write_hashes(config, kind, known[:1])
    return Rotated(config.parent / f"{kind}.token", known[:1])


def _known(settings: Settings, kind: str) -> tuple[str, ...]:
    known: tuple[str, ...] = settings.metrics.token if kind == "metrics" else getattr(settings.tokens, kind)
    if not known:
        raise UsageError("[metrics] has no token yet; put any hash there, and exchange it")
    return known


def next_file(settings: Settings) -> Path:
    return settings.peer.token_file.with_name(settings.peer.token_file.name + ".next")


def _write_hashes(config: Path, kind: str, hashes: tuple[str, ...]) -> None:
    """Into the one line of the settings that has them; all else stays as it was written."""
    value = f'"{hashes[0]}"' if len(hashes) == 1 else "[" + ", ".join(f'"{one}"' for one in hashes) + "]"
    name = "token" if kind == "metrics" else kind  # in [metrics], where there is no other
    line = re.compile(rf"^{name} = (\"[0-9a-f]{{64}}\"|\[[^\]\n]*\])", re.MULTILINE)
    text, count = line.subn(f"{name} = {value}", config.read_text())
    if count != 1:
        raise UsageError(f"{config}: [tokens] {kind} does not stand there once, on one line; exchange it by hand")
    write_durably(config, text.encode())
    load(config)
