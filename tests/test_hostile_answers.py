"""What files of others and answers must not do: reach another campaign, fill memory, start a formula."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import analyst.cli
from analyst.present.table import Columns, Tabular
from dealer.cli import main as dealer
from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import InvalidPeerResponse
from fss_ecdf.cli.server import main as server
from fss_ecdf.net import https
from fss_ecdf.operators import site_registry
from tests.campaign.helpers import campaign
from tests.commands import Done, call
from tests.harness.server_pair import LivePair, name
from tests.hostile import answering
from tests.servers.conftest import new_campaign
from tests.test_two_operators import _one_server

SITE = {"label": "Hospital", "token": "1" * 64, "quota": 10}


def _quota(pair: LivePair, cid: str) -> int:
    with pair.operator(1) as client:
        return int(client.get(f"/v1/campaigns/{cid}/sites").json()[0]["quota"])


@pytest.fixture
def two(pair: LivePair) -> tuple[Any, Any]:
    """A campaign that both operators are about, and another one that is none of the other operator's business."""
    made = [new_campaign(admission="sites", min_uploads=1) for _ in range(2)]
    for one, digit in zip(made, "ab", strict=True):
        pair.create(one)
        with pair.operator(1) as client:
            new = {"sites": [{**SITE, "id": digit * 32}]}
            assert client.post(f"/v1/campaigns/{name(one)}/sites", json=new).status_code == 200
    return made[0], made[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "../../{other}/sites/" + "b" * 32, "quota": 99}, "changes.0.id"),
        ({"id": "..%2f..%2f{other}%2fsites%2f" + "b" * 32, "quota": 99}, "changes.0.id"),
        ({"id": "a" * 32 + "?x=1", "quota": 99}, "changes.0.id"),
        ({"quota": 99}, "changes.0.id: Field required"),
        ({"id": "a" * 32, "quota": "99"}, "changes.0.quota"),
        ({"id": "a" * 32, "quota": 0}, "changes.0.quota"),
        ({"id": "a" * 32, "more": 1}, "changes.0.more"),
        ({"id": ["a" * 32], "quota": 99}, "changes.0.id"),
    ],
)
def test_a_file_of_the_other_operator_reaches_its_campaign_only(
    pair: LivePair, tmp_path: Path, two: tuple[Any, Any], change: dict[str, Any], said: str
) -> None:
    """The audit's path traversal, to its end: accepted with --yes, the quota of another campaign was changed."""
    mine, other = two
    if isinstance(change.get("id"), str):
        change = {**change, "id": change["id"].replace("{other}", name(other))}
    about = {"format": site_registry.FORMAT, "campaign": name(mine), "digest": to_base64url(mine.digest)}
    path = tmp_path / "changes.json"
    path.write_text(json.dumps({**about, "changes": [change]}))
    words = ["campaign", "--operator-config", str(_one_server(pair, 1, tmp_path)), "sites", "apply", str(path), "--yes"]
    done = call(server, *words, cwd=tmp_path)
    assert (_quota(pair, name(other)), _quota(pair, name(mine))) == (10, 10)
    assert done.returncode == 65, done.stdout
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_is_right_in_such_a_file_is_done(pair: LivePair, tmp_path: Path, two: tuple[Any, Any]) -> None:
    mine, _ = two
    path = tmp_path / "changes.json"
    about = {"format": site_registry.FORMAT, "campaign": name(mine), "digest": to_base64url(mine.digest)}
    path.write_text(json.dumps({**about, "changes": [{"id": "a" * 32, "quota": 12}]}))
    words = ["campaign", "--operator-config", str(_one_server(pair, 1, tmp_path)), "sites", "apply", str(path), "--yes"]
    assert call(server, *words, cwd=tmp_path).returncode == 0
    assert _quota(pair, name(mine)) == 12
    path.write_text(json.dumps({**about, "campaign": "../" + name(mine)[3:]}))
    assert "campaign" in call(server, *words, cwd=tmp_path).stderr


def test_a_dishonest_server_s_site_id_is_not_used_at_the_other(
    pair: LivePair, tmp_path: Path, two: tuple[Any, Any]
) -> None:
    """An operator of both servers asks one for its sites and changes them at both."""
    mine, other = two
    lie = [
        {
            "id": f"../../{name(other)}/sites/{'b' * 32}",
            "label": "Hospital",
            "state": "active",
            "quota": 5,
            "uploads": 0,
        }
    ]
    token = [pair.folder / f"server{role}" / "operator.token" for role in (0, 1)]
    with answering(pair.folder / "server0", lambda _: (200, lie)) as url:
        about = [(url, token[0]), (pair.url(1), token[1])]
        text = "".join(f'[[server]]\nurl = "{u}"\nca = "{pair.folder}/ca.pem"\ntoken_file = "{t}"\n' for u, t in about)
        (tmp_path / "operator.toml").write_text(text)
        words = ["sites", "set-quota", name(mine), "Hospital", "99"]
        done = call(server, "campaign", "--operator-config", str(tmp_path / "operator.toml"), *words, cwd=tmp_path)
    assert (done.returncode, _quota(pair, name(other))) == (75, 10)
    assert "did not send a list of sites" in done.stderr


def _endless() -> Iterator[bytes]:
    while True:
        yield b" " * (1 << 16)


def test_no_program_reads_an_answer_without_end(
    pair: LivePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stops at its limit, says so, and does not ask again."""
    monkeypatch.setattr("dealer.servers.MOST_BYTES", 1 << 20)
    monkeypatch.setattr("fss_ecdf.operators.servers.MOST_BYTES", 1 << 20)
    asked: list[str] = []

    def answer(path: str) -> tuple[int, Any]:
        asked.append(path)
        return 200, _endless()

    ca, token = str(pair.folder / "ca.pem"), str(pair.folder / "server0" / "operator.token")
    done: list[Done] = []
    with answering(pair.folder / "server0", answer) as url:
        where = f"{url}/v1/campaigns/{to_base64url(campaign().id)}"
        (tmp_path / "operator.toml").write_text(f'[[server]]\nurl = "{url}"\nca = "{ca}"\ntoken_file = "{token}"\n')
        second = where.replace(url, pair.url(1))
        done.append(call(dealer, "upload", "--campaign", where, second, "--value", "3", "--dry-run", "--ca", ca))
        done.append(call(analyst.cli.main, "budget", where, "--ca", ca, env={"FSS_ANALYST_TOKEN": "x"}))
        done.append(call(server, "campaign", "--operator-config", str(tmp_path / "operator.toml"), "list"))
    assert len(asked) == 3
    for one in done:
        assert one.returncode == 75
        assert "bytes that the answer may have [invalid-peer-response]" in one.stderr


def test_no_command_of_a_server_reads_the_other_one_without_end(pair: LivePair) -> None:
    settings = pair.folder / "server1" / "server.toml"
    with answering(pair.folder / "server0", lambda _: (200, _endless())) as url:
        config = settings.with_name("endless.toml")
        config.write_text(settings.read_text().replace(pair.url(0), url))
        config.chmod(0o600)
        shown = call(server, "recovery", "show", "--config", str(config))
        looked = call(server, "doctor", "--config", str(config))
    assert shown.returncode == 75
    for said in (shown.stderr, looked.stdout):
        assert "the other server sends more than the 1048576 bytes that the answer may have" in said


def test_a_packed_answer_is_refused_before_it_is_unpacked() -> None:
    packed = httpx.MockTransport(lambda _: httpx.Response(200, headers={"Content-Encoding": "br"}, content=b"x"))
    with httpx.Client(transport=packed) as client, pytest.raises(InvalidPeerResponse, match="packs its answers"):
        https.ServerEndpoint("server 0", https.RetryPolicy(5)).ask(client, "GET", "https://server", most=10)


class _Table(Tabular):
    def columns(self) -> Columns:
        return {"stratum": ["=cmd|' /C calc'!A0", "a;@SUM(1)", "plain"], "=1+1": [-1.5, 2.0, -3]}

    def metadata(self) -> dict[str, Any]:
        return {}


def test_a_stratum_starts_no_formula_in_a_spreadsheet() -> None:
    """A stratum called =cmd|... was the beginning of a cell."""
    text = _Table().to_csv()
    for separator in ",;":
        cells = [cell for row in csv.reader(io.StringIO(text), delimiter=separator) for cell in row]
        assert not [cell for cell in cells if cell[:1] in "=+@" and cell]
    rows = list(csv.reader(io.StringIO(text)))
    assert rows == [["stratum", "'=1+1"], ["'=cmd|' /C calc'!A0", "-1.5"], ["a;'@SUM(1)", "2.0"], ["plain", "-3"]]
