"""New certificates and tokens without an end of the server: SIGHUP, and two tokens while one is exchanged."""

import os
import re
import signal
import ssl
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fss_ecdf.cli.server import main
from fss_ecdf.net.tokens import hash_token
from servers.maintenance import diagnostics
from servers.settings import load
from tests.commands import Done, call
from tests.harness.server_pair import LivePair
from tests.servers.conftest import filled
from tests.servers.rollbacks import config

NOW = datetime.now(UTC)


def certify(folder: Path, begins: datetime, ends: datetime, *, key: bool = True) -> str:
    """A certificate of its own in place of the server's; returns it."""
    own = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "new")])
    builder = x509.CertificateBuilder().subject_name(named).issuer_name(named).public_key(own.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(begins).not_valid_after(ends)
    text = builder.sign(own, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    (folder / "cert.pem").write_text(text)
    if key:
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        (folder / "key.pem").write_bytes(own.private_bytes(serialization.Encoding.PEM, *form))
    return text


def served(pair: LivePair, role: int = 0) -> str:
    return ssl.get_server_certificate(("127.0.0.1", pair.ports[role]))


def reload(pair: LivePair, role: int, outcome: str = "reloaded") -> None:
    process, start = pair.processes[role], len(pair.log(role))
    assert process is not None
    os.kill(process.pid, signal.SIGHUP)
    until = time.monotonic() + 30
    while not any(event["event"] == outcome for event in pair.events(role, start)):
        assert time.monotonic() < until, pair.log(role)[start:]
        time.sleep(0.05)
    assert process.poll() is None


def tokens(*args: str) -> Done:
    done = call(main, "tokens", "rotate", *args)
    assert done.returncode == 0, done.stderr
    return done


def operates(pair: LivePair, token: str, role: int = 0) -> int:
    with pair.client(role, token) as client:
        return client.get("/v1/campaigns").status_code


@pytest.fixture
def own(tmp_path: Path) -> LivePair:
    return LivePair(tmp_path)


def test_a_new_certificate_is_shown_and_connections_go_on(own: LivePair) -> None:
    with own as pair:
        folder, old, settings = pair.folder / "server0", served(pair), load(config(pair))
        assert diagnostics.served(settings).verdict == diagnostics.OK
        with pair.operator(0) as client:
            assert client.get("/v1/campaigns").status_code == 200
            new = certify(folder, NOW - timedelta(days=1), NOW + timedelta(days=9))
            assert served(pair) == old
            assert (diagnostics.served(settings).verdict, settings.port) == (diagnostics.WARNING, pair.ports[0])
            reload(pair, 0)
            assert diagnostics.served(settings).verdict == diagnostics.OK
            assert served(pair) == new
            assert client.get("/v1/campaigns").status_code == 200  # on the connection from before

        # What cannot be used is not taken.
        certify(folder, NOW - timedelta(days=9), NOW - timedelta(days=1))
        reload(pair, 0, "not-reloaded")
        assert "ended on" in pair.events(0)[-1]["why"]
        (folder / "server.toml").write_text("nonsense = ")
        reload(pair, 0, "not-reloaded")
        assert served(pair) == new


def test_two_tokens_are_good_until_the_exchange_is_finished(own: LivePair) -> None:
    with own as pair:
        old = pair.servers[0].operator
        done = tokens("operator", "--config", str(config(pair)))
        assert "the old one is good, too" in done.stdout
        new = (pair.folder / "server0" / "operator.token").read_text().strip()
        assert [operates(pair, token) for token in (old, new)] == [200, 401]
        reload(pair, 0)
        assert [operates(pair, token) for token in (old, new)] == [200, 200]
        twice = call(main, "tokens", "rotate", "operator", "--config", str(config(pair)))
        assert "two operator tokens are accepted already" in twice.stderr
        tokens("operator", "--finish", "--config", str(config(pair)))
        reload(pair, 0)
        assert [operates(pair, token) for token in (old, new)] == [401, 200]
        once = call(main, "tokens", "rotate", "operator", "--finish", "--config", str(config(pair)))
        assert "there is nothing to finish" in once.stderr


def test_servers_reach_each_other_while_their_token_is_exchanged(own: LivePair) -> None:
    with own as pair:
        campaign, _ = filled(pair)
        old = (pair.folder / "server0" / "peer.token").read_text().strip()

        def reached() -> bool:
            return "state" in pair.status(campaign, 0)["peer"]

        done = tokens("peer", "--config", str(config(pair, 0)))
        accepted = next(line.strip() for line in done.stdout.splitlines() if line.strip().startswith("peer = ["))
        assert reached()
        theirs = config(pair, 1)
        before = f'peer = "{hash_token(old)}"'
        assert theirs.read_text().count(before) == 1
        theirs.write_text(theirs.read_text().replace(before, accepted))
        reload(pair, 1)
        assert reached()
        done = tokens("peer", "--finish", "--config", str(config(pair, 0)))
        reload(pair, 0)
        assert reached()
        only = next(line.strip() for line in done.stdout.splitlines() if line.strip().startswith('peer = "'))
        theirs.write_text(theirs.read_text().replace(accepted, only))
        reload(pair, 1)
        assert reached()
        with pair.client(1, old) as client:
            assert client.get("/v1/peer/about").status_code == 401
        pair.seal(campaign)


@pytest.mark.parametrize("what", ["ended", "not begun", "another key", "nonsense"])
def test_a_certificate_that_nobody_would_accept_is_refused_at_the_start(own: LivePair, what: str) -> None:
    folder = own.folder / "server0"
    if what == "nonsense":
        (folder / "cert.pem").write_text("nonsense")
    else:
        days = {"ended": (-9, -1), "not begun": (1, 9), "another key": (-1, 9)}[what]
        certify(folder, *(NOW + timedelta(days=day) for day in days), key=what != "another key")
    said = {
        "ended": "the certificate ended on .* UTC, and nobody would accept it; renew it",
        "not begun": "the certificate begins on .*; is this machine's clock right",
        "another key": "is not the key of the certificate",
        "nonsense": "is not a certificate in PEM",
    }[what]
    done = call(main, "run", "--config", str(config(own)))
    assert done.returncode == 64
    assert re.search(said, done.stderr), done.stderr
    assert not (folder / "data" / "server.db").exists()
