"""`fss-server tokens rotate`: a new token in place of one that was lost or seen by others."""

from pathlib import Path

from campaign.files import write_durably
from client.program import BadSettings
from client.tokens import hash_token, new_token
from servers.settings import load


def rotate(kind: str, config: Path) -> tuple[Path, str]:
    """Writes the new token beside the settings and its hash into them; returns the file and the hash.

    The server's own token for the other one, `peer`, is known there by its hash: that operator has to change it.
    """
    settings = load(config)
    token, text = new_token(kind), config.read_text()
    if kind == "peer":
        write_durably(settings.peer.token_file, f"{token}\n".encode())
        return settings.peer.token_file, hash_token(token)
    old, path = str(getattr(settings.tokens, kind)), config.parent / f"{kind}.token"
    if text.count(old) != 1:
        raise BadSettings(f"{config}: [tokens] {kind} does not stand there once; exchange it by hand")
    write_durably(path, f"{token}\n".encode())
    write_durably(config, text.replace(old, hash_token(token)).encode())
    return path, hash_token(token)
