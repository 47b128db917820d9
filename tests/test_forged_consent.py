"""What a person agrees to is what is shown: attacks on consent, proposals and dry runs, seen on a terminal."""

import hashlib
import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dealer import commands as dealer_commands
from dealer.cli import main as dealer
from dealer.servers import ServerPair
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import InvalidCampaign, Refused
from fss_ecdf.campaign.json_messages import NewSite
from fss_ecdf.campaign.text import is_text
from fss_ecdf.cli import common
from fss_ecdf.cli.server import main as server
from fss_ecdf.operators import proposals, site_commands, site_registry
from fss_ecdf.operators.proposals import Proposal
from tests.campaign.helpers import campaign
from tests.commands import Done, call
from tests.harness.server_pair import LivePair
from tests.hostile import answering, screen
from tests.servers.test_sites import TOML
from tests.test_next_steps import status
from tests.test_two_operators import _one_server

# Up over the lines that say what is agreed to, and other ones in their place.
FORGED = (
    "HbA1c\x1b[s\x1b[2J\x1b[H  privacy   epsilon 0.1 in all\r\n"
    "  keys      checked: an upload that is not one value, well made, is left out\r\n  uploads   at least 100\x1b[8m"
)
BADLY = {"epsilon": 20.0, "check_keys": False, "min_uploads": 1}


def _digest(fields: dict[str, Any]) -> str:
    """As a proposer's own program would compute it."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return to_base64url(hashlib.sha256(b"fss-ecdf campaign 8\n" + text.encode()).digest())


def _described(done: Done) -> list[str]:
    return screen(done.stdout + done.stderr)


@pytest.mark.parametrize("field", ["title", "question", "unit", "name", "strata", "address"])
def test_a_proposal_cannot_show_another_campaign_than_it_creates(pair: LivePair, tmp_path: Path, field: str) -> None:
    """Played to its end: the operator who is asked answers yes. What is created must be what was seen, or nothing."""
    (tmp_path / "study.toml").write_text(TOML.replace('admission = "sites"\n', ""))
    first, second = _one_server(pair, 0, tmp_path), _one_server(pair, 1, tmp_path)
    assert (
        call(server, "campaign", "--operator-config", str(first), "propose", str(tmp_path / "study.toml")).returncode
        == 0
    )
    path = tmp_path / "study.proposal.json"
    whole = json.loads(path.read_text())
    fields = {**whole["campaign"], **BADLY}
    if field == "address":
        whole["addresses"] = [pair.url(0) + "/" + FORGED, pair.url(1)]
    else:
        short = "u\x1b[2J\x1b[H  privacy   epsilon 0.1"
        forged = ["no", FORGED] if field == "strata" else short if field == "unit" else FORGED[:80]
        (fields["variables"][0] if field in ("unit", "name") else fields)[field] = forged
    path.write_text(json.dumps({**whole, "campaign": fields, "digest": _digest(fields)}, ensure_ascii=False))

    accepted = call(
        server, "campaign", "--operator-config", str(second), "accept", str(path), stdin="y\n", cwd=tmp_path
    )
    seen = "\n".join(_described(accepted))
    assert accepted.returncode == 65, seen
    assert "epsilon 0.1 in all" not in seen.splitlines()[:1]
    assert "\x1b" not in accepted.stdout + accepted.stderr
    assert len(accepted.stderr.splitlines()) == 1
    listed = call(server, "campaign", "--operator-config", str(second), "status", fields["id"])
    assert "[unknown-campaign]" in listed.stdout


def test_a_server_does_not_take_such_a_campaign(pair: LivePair) -> None:
    fields = json.loads(campaign(**BADLY).to_json())
    body = {"campaign": {**fields, "title": FORGED}, "upload_token": "0" * 64}
    with pair.operator(0) as client:
        answer = client.post("/v1/campaigns", json=body)
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (422, "invalid-campaign")
    assert is_text(answer.json()["detail"])


def _dry_run(pair: LivePair, one: str, name: str) -> Done:
    two = pair.url(1)
    words = ["upload", "--campaign", *(f"{url}/v1/campaigns/{name}" for url in (one, two)), "--value", "3", "--dry-run"]
    return call(dealer, *words, "--ca", str(pair.folder / "ca.pem"))


def test_a_dry_run_refuses_a_campaign_with_such_a_text(pair: LivePair) -> None:
    fields = json.loads(campaign(**BADLY).to_json())
    lie = {"campaign": {**fields, "title": FORGED}, "server": 0, "state": "open", "digest": "x"}
    with answering(pair.folder / "server0", lambda _: (200, lie)) as url:
        done = _dry_run(pair, url, fields["id"])
    assert done.returncode != 0
    assert "epsilon 0.1" not in "\n".join(_described(done))
    assert "\x1b" not in done.stdout + done.stderr


def test_what_a_server_says_stays_on_its_line(pair: LivePair, tmp_path: Path) -> None:
    """In problems, in a status and in a list: each is a line, and those above it are as they were."""
    bad = "no\r\n\x1b[3A\x1b[2Kserver 1: sealed, 100 uploads\u202e\x9b2J"
    problem = {"type": "urn:fss-ecdf:problem:refused", "title": "t", "status": 403, "detail": bad}
    told = status("sealed", title=bad, phase=bad, problem=bad, progress=1.0, sealed_uploads=1, unmatched=0).fields()
    told |= {"troubles": [{"wave": 0, "what": bad, "since": bad, "detail": bad}], "closes": bad, "on_hold": bad}
    told |= {"peer": {"problem": bad, "detail": bad}}
    lists = [{"id": "a" * 43, "state": bad, "uploads": bad, "title": bad}]
    name = to_base64url(campaign().id)
    operator = tmp_path / "operator.toml"
    ca, token = pair.folder / "ca.pem", pair.folder / "server0" / "operator.token"

    def answer(path: str) -> tuple[int, Any]:
        good = {"status": told, "campaigns": lists}.get(path.rpartition("/")[2])
        return (403, problem) if good is None else (200, good)

    with answering(pair.folder / "server0", answer) as url:
        operator.write_text(f'[[server]]\nurl = "{url}"\nca = "{ca}"\ntoken_file = "{token}"\n')
        done = [_dry_run(pair, url, name)]
        for words in (["status", name], ["list"], ["show", name], ["discard-excluded", name], ["sites", "list", name]):
            done.append(call(server, "campaign", "--operator-config", str(operator), *words))
    for one in done:
        printed = one.stdout + one.stderr
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", printed)
        assert not [line for line in screen(printed, 1000, 20) if line.startswith("server 1: sealed")]


texts = st.text(st.characters(), min_size=1, max_size=300).map(lambda s: " ".join(s.split())).filter(is_text)
ODD = ["\u0301", "\u20dd", "\u05d0", "\u0627", "\u4e2d", "\uff5c", "\u2502", "\U0001f600"]
hostile = st.text(st.sampled_from([*"ab |:0.1", *ODD]), min_size=1, max_size=200)
texts |= hostile.map(lambda s: " ".join(s.split())).filter(lambda s: bool(s) and is_text(s))
MARK = re.compile(r"    .{9} \| |  written by whoever")


def _rows(printed: str, made: Campaign) -> tuple[list[str], list[str]]:
    """The screen before what people wrote, and the rest."""
    rows = screen(printed.replace(to_base64url(made.digest), "D" * 43))
    at = next(i for i, row in enumerate(rows) if row.startswith("  written by whoever"))
    return rows[:at], rows[at:]


def _proposal(made: Campaign) -> str:
    addresses = ["https://a.example", "https://b.example"]
    return "\n".join(proposals.describe(Proposal(made, "0" * 64, [], addresses))) + "\n"


AT = ServerPair([f"https://{host}.example/v1/campaigns/x" for host in "ab"], "token", digest=bytes(32))


def _consent(made: Campaign) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        dealer_commands._describe(made, made.to_positions([0.5], [made.strata[0]]), (), AT)
    return out.getvalue()


@settings(max_examples=60, deadline=None)
@given(title=texts, question=texts, unit=texts, name=texts, stratum=texts)
def test_no_text_changes_a_line_that_it_is_not_on(**given_: str) -> None:
    limits = {"title": 200, "question": 2000, "unit": 40, "name": 80, "stratum": 200}
    chosen: dict[str, Any] = {name: text[: limits[name]].strip() or "x" for name, text in given_.items()}
    if not all(map(is_text, chosen.values())):
        return
    strata = [chosen.pop("stratum"), "the other"]
    made, plain = campaign(**chosen, strata=strata, **BADLY), campaign(strata=["one", "the other"], **BADLY)
    for show in (_proposal, _consent):
        numbers, words = _rows(show(made), made)
        assert numbers == _rows(show(plain), plain)[0]
        assert any("epsilon 20 in all" in row for row in numbers)
        assert any("NOT CHECKED" in row for row in numbers)
        assert any("at least 1" in row for row in numbers)
        assert all(MARK.match(row + " ") for row in words)


@settings(max_examples=100, deadline=None)
@example("\u09be")  # a mark that takes a cell of its own, at the start
@given(st.text(max_size=300))
def test_a_problem_is_one_line_whatever_it_says(detail: str) -> None:
    err = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", err)
        common.print_error("fss-x", Refused(detail))
    rows = screen("a line before\n" + err.getvalue() + "a line after\n", 4000, 6)
    assert (rows[0], rows[2:]) == ("a line before", ["a line after"])
    assert rows[1].startswith("fss-x: ")


@given(st.text(max_size=200))
def test_what_was_forgotten_is_escaped_by_the_stream(text: str) -> None:
    done = call(lambda _: common.run_command("fss-x", "x", lambda: print(text) or 0))
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", done.stdout)


def test_labels_stay_on_their_line() -> None:
    made = campaign(admission="sites")
    new = NewSite(id="a" * 32, label="St. Mary: becomes paused " + "x" * 150, token="0" * 64, quota=3)
    file = site_commands.SitesFile(format=site_registry.FORMAT, campaign=made.id, digest=made.digest, sites=[new])
    rows = screen("\n".join(site_commands.describe(made, file, {})))
    assert rows[1].startswith("  up to 3 uploads, a new site: 'St. Mary")
    with pytest.raises(InvalidCampaign):
        replace(Proposal(made, None, [], []), campaign=campaign(title="a\nb"))


@pytest.fixture(autouse=True)
def eighty_columns() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        yield
