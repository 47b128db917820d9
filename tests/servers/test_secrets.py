"""How secrets are kept and compared: in constant time, as hashes, in files for their owner only."""

import ast
import sqlite3
from pathlib import Path

from fss_ecdf.net.tokens import hash_token, new_token
from fss_ecdf.operators.setup import init_pair
from servers.api import auth
from servers.settings import Tokens
from tests.harness.server_pair import LivePair
from tests.servers.conftest import new_campaign

SERVERS = Path(auth.__file__).parents[1]
SECRET_NAMES = {"token", "given", "upload_token", "operator", "analyst", "peer", "peer_hash", "noise_seed"}


def test_tokens_are_compared_in_constant_time() -> None:
    """Who may do what is decided in two files, and nothing there compares a secret with == or in."""
    files = ("api/auth.py", "storage/admission.py")
    tree = ast.parse("\n".join((SERVERS / file).read_text() for file in files))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        names = {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(node)}
        equality = any(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in node.ops)
        assert not (equality and names & SECRET_NAMES), ast.unparse(node)
    called = [ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)]
    assert called.count("hmac.compare_digest") == 2


def test_every_role_is_compared_whichever_matches() -> None:
    """The time does not say which of the tokens was right."""
    kinds = ("operator", "analyst", "peer")
    tokens = {kind: new_token(kind) for kind in kinds}
    known = Tokens(peer_signing_key="A" * 43, **{kind: (hash_token(token),) for kind, token in tokens.items()})
    for kind, token in tokens.items():
        assert auth.role_of(hash_token(token), known) == kind
    assert auth.role_of(hash_token("other"), known) is None


def test_tokens_are_stored_as_hashes_only(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign, invited = new_campaign(), new_campaign(admission="invited")
        invitations = [new_token("invite") for _ in range(3)]
        pair.create(campaign)
        pair.create(invited, invitations=invitations)
        secret = [pair.upload_tokens[campaign.id], *invitations, pair.servers[0].operator, pair.servers[0].analyst]
        kept = list((pair.folder / "server0" / "data").rglob("*"))
        content = b"".join(path.read_bytes() for path in kept if path.is_file())
        for token in secret:
            assert token.encode() not in content
        with sqlite3.connect(pair.folder / "server0" / "data" / "server.db") as db:
            (stored,) = db.execute("SELECT upload_token FROM campaigns WHERE id = ?", (campaign.id,)).fetchone()
        db.close()
        assert stored == hash_token(pair.upload_tokens[campaign.id])


def test_new_secrets_are_for_their_owner_only(tmp_path: Path) -> None:
    init_pair(tmp_path / "pair", ("127.0.0.1", "127.0.0.1"), (1, 2))
    public = {"cert.pem", "ca.pem", "peer-ca.pem"}
    files = [path for path in (tmp_path / "pair").rglob("*") if path.is_file()]
    for path in files:
        if path.name not in public:
            assert path.stat().st_mode & 0o777 == 0o600, path
    for folder in {path.parent for path in files}:
        assert folder.stat().st_mode & 0o077 == 0, folder
