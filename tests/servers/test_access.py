"""Every route with every wrong kind of token, and no secret in any answer or log line."""

import sqlite3
from typing import Any

import numpy as np
import pytest

from fss_ecdf.campaign.binary_messages import UPLOAD_TYPE
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.sealed_uploads import seal_upload
from servers.api.app import ROUTES as ROOMS
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign

Sealed = tuple[Campaign, np.ndarray[Any, Any]]

ROUTES = [
    ("GET", "/v1/actions", {"operator"}),
    ("GET", "/v1/campaigns", {"operator"}),
    ("POST", "/v1/campaigns", {"operator"}),
    ("GET", "/v1/commitments/{id}", {"operator"}),
    ("GET", "/v1/campaigns/{id}/status", {"operator"}),
    ("POST", "/v1/campaigns/{id}/seal", {"operator"}),
    ("POST", "/v1/campaigns/{id}/abandon?wave=1", {"operator"}),
    ("POST", "/v1/campaigns/{id}/discard-excluded", {"operator"}),
    ("DELETE", "/v1/campaigns/{id}/seal", {"operator"}),
    ("POST", "/v1/campaigns/{id}/unfreeze", {"operator"}),
    ("GET", "/v1/campaigns/{id}/sites", {"operator"}),
    ("POST", "/v1/campaigns/{id}/sites", {"operator"}),
    ("PATCH", "/v1/campaigns/{id}/sites/{site}", {"operator"}),
    ("DELETE", "/v1/campaigns/{id}", {"operator"}),
    ("POST", "/v1/campaigns/{id}/uploads", {"upload"}),
    ("POST", "/v1/campaigns/{id}/uploads/withdraw", {"upload"}),
    ("GET", "/v1/campaigns/{id}/ecdf?at=0.5", {"analyst"}),
    ("GET", "/v1/campaigns/{id}/curve", {"analyst"}),
    ("GET", "/v1/campaigns/{id}/counts", {"analyst"}),
    ("GET", "/v1/campaigns/{id}/budget", {"analyst", "operator"}),
    ("GET", "/v1/campaigns/{id}/waves", {"analyst", "operator"}),
    ("POST", "/v1/campaigns/{id}/sums", {"analyst"}),
    ("GET", "/v1/peer/campaigns/{id}", {"peer"}),
    ("POST", "/v1/peer/campaigns/{id}/shares", {"peer"}),
    ("POST", "/v1/peer/campaigns/{id}/sums", {"peer"}),
    ("POST", "/v1/peer/campaigns/{id}/freeze", {"peer"}),
    ("POST", "/v1/peer/campaigns/{id}/unfreeze", {"peer"}),
    ("POST", "/v1/peer/campaigns/{id}/ids", {"peer"}),
    ("POST", "/v1/peer/campaigns/{id}/exclude", {"peer"}),
    ("POST", "/v1/peer/campaigns/{id}/agree", {"peer"}),
    ("POST", "/v1/peer/campaigns/{id}/challenge", {"peer"}),
    ("POST", "/v1/peer/campaigns/{id}/messages", {"peer"}),
    ("GET", "/v1/peer/campaigns/{id}/statement", {"peer"}),
    ("POST", "/v1/peer/campaigns/{id}/table-messages", {"peer"}),
    ("POST", "/v1/peer/campaigns/{id}/abandon", {"peer"}),
    ("GET", "/v1/peer/commitments/{id}", {"peer"}),
    ("GET", "/v1/peer/about", {"peer"}),
    ("GET", "/v1/peer/history", {"peer"}),
]
PUBLIC = {"/healthz", "/readyz", "/docs", "/v1/campaigns/{cid}"}


def tokens(pair: LivePair, campaign: Campaign) -> dict[str, str]:
    """Every token that means something to server 0, by kind."""
    return {
        "operator": pair.servers[0].operator,
        "analyst": pair.servers[0].analyst,
        "peer": (pair.folder / "server1" / "peer.token").read_text().strip(),
        "upload": pair.upload_tokens[campaign.id],
    }


@pytest.mark.parametrize(("method", "path", "allowed"), ROUTES)
def test_wrong_tokens(pair: LivePair, sealed: Sealed, method: str, path: str, allowed: set[str]) -> None:
    campaign = sealed[0]
    url = path.replace("{id}", name(campaign))
    known = tokens(pair, campaign)
    others = {
        "nobody": None,
        "made up": "fss-op-made-up",
        "other server's operator": pair.servers[1].operator,
        "other server's analyst": pair.servers[1].analyst,
    }
    for kind, token in (known | others).items():
        if kind in allowed:
            continue
        with pair.client(0, token) as client:
            response = client.request(method, url)
        assert response.status_code in (401, 403), (kind, response.text)
        recognised = kind in ("operator", "analyst", "peer")
        assert (response.status_code == 403) == recognised, (kind, response.text)
        assert response.headers["content-type"] == "application/problem+json"
        if response.status_code == 401:
            assert response.headers["www-authenticate"] == "Bearer"


def test_the_list_of_routes_is_complete(pair: LivePair) -> None:
    listed = {(method, path.split("?")[0].replace("{id}", "{cid}")) for method, path, _ in ROUTES}
    for module in ROOMS:
        for route in module.router.routes:
            path = str(getattr(route, "path", ""))
            for method in getattr(route, "methods", set()):
                assert path in PUBLIC or (method, path) in listed, (method, path)


@pytest.mark.parametrize("header", ["", "Basic abc", "Bearer", "bearer\tx", "Bearer " + "x" * 600])
def test_odd_authorization_headers(pair: LivePair, header: str) -> None:
    with pair.client(0) as client:
        response = client.get("/v1/campaigns", headers={"Authorization": header})
    assert response.status_code == 401


def test_unknown_addresses_are_problems_too(pair: LivePair) -> None:
    with pair.operator(0) as client:
        for method, path, status in (
            ("GET", "/nothing", 404),
            ("PUT", "/v1/campaigns", 405),
            ("GET", "/v1/campaigns/short", 404),
            ("GET", f"/v1/campaigns/{to_base64url(bytes(32))}", 404),
            ("GET", "/v1/campaigns/%00%ff", 404),
        ):
            response = client.request(method, path)
            assert response.status_code == status, path
            assert response.headers["content-type"] == "application/problem+json"


def secrets_of(pair: LivePair, campaign: Campaign, planted: bytes) -> list[tuple[str, bytes]]:
    """Everything server 0 must never show, in every form it might take."""
    secret = [("planted key", planted)]
    with sqlite3.connect(pair.folder / "server0" / "data" / "server.db") as db:
        seed = db.execute("SELECT noise_seed FROM campaigns WHERE id = ?", (campaign.id,)).fetchone()[0]
        key = db.execute(
            "SELECT key FROM uploads WHERE campaign = (SELECT number FROM campaigns WHERE id = ?) LIMIT 1",
            (campaign.id,),
        ).fetchone()[0]
    db.close()
    # The last 32 bytes that are stored are a hash.
    secret += [("noise seed", seed), ("stored key", key[8:24]), ("stored key", key[-48:-32])]
    forms = []
    for what, value in secret:
        number = str(int.from_bytes(value[:8], "little")).encode()
        forms += [(what, value[:16]), (what, value[:16].hex().encode()), (what, to_base64url(value)[:20].encode())]
        forms += [(what, number)]
    return forms + [(kind, token.encode()) for kind, token in tokens(pair, campaign).items()]


def test_no_secret_in_any_answer_or_log(pair: LivePair) -> None:
    campaign = new_campaign(strata=["no", "yes"], reserve=1.0)
    pair.create(campaign)
    data = envelopes(campaign, np.arange(40))
    planted = data[0][-16:]
    answers = []
    for role in (0, 1):
        answers.append(pair.upload(role, campaign, data[role]))
    answers.append(pair.upload(0, campaign, data[0][:-8] + b"\xff" * 8))
    pair.seal(campaign)
    pair.wait_ready(campaign)
    known = tokens(pair, campaign)
    bodies: list[dict[str, Any]] = [
        {},
        {"content": b"{"},
        {"json": {"upper_ends": [0.5, 1.0], "epsilon": 0.5}},
        {"json": {"digest": to_base64url(campaign.digest), "positions": "all"}},
        {"content": seal_upload(campaign, 0, data[0], known["upload"]), "headers": {"Content-Type": UPLOAD_TYPE}},
    ]
    for token in [*known.values(), None]:
        with pair.client(0, token) as client:
            for method, path, _ in [
                *ROUTES,
                *(("GET", p, set()) for p in ("/healthz", "/readyz", "/docs", "/openapi.json")),
            ]:
                if method == "DELETE" or "freeze" in path:
                    continue
                for body in bodies if method == "POST" else bodies[:1]:
                    answers.append(client.request(method, path.replace("{id}", name(campaign)), **body))
    assert all(answer.status_code != 500 for answer in answers)
    log = pair.log(0).encode()
    for what, form in secrets_of(pair, campaign, planted):
        assert form not in log, what
        for answer in answers:
            assert form not in answer.content, (what, answer.url)
            assert form not in str(answer.headers).encode(), (what, answer.url)


def test_files_with_secrets_are_for_their_owner_only(pair: LivePair, sealed: Sealed) -> None:
    for role in (0, 1):
        folder = pair.folder / f"server{role}"
        secret = [folder / f for f in ("server.toml", "peer.token", "operator.token", "analyst.token", "key.pem")]
        secret += [p for p in (folder / "data").rglob("*") if p.is_file()]
        for path in secret:
            assert path.stat().st_mode & 0o077 == 0, path
    text = (pair.folder / "server0" / "server.toml").read_text()
    assert all(token not in text for token in tokens(pair, sealed[0]).values())


def test_metrics_and_openapi(pair: LivePair, sealed: Sealed) -> None:
    text = pair.metrics(0)
    with pair.operator(0) as client:
        api = client.get("/openapi.json").json()
    for metric in ("fss_uploads_total", "fss_refusals_total", "fss_request_seconds", "fss_curve_seconds"):
        assert metric in text
    assert "/v1/campaigns/{cid}/ecdf" in api["paths"]
    assert not any("peer" in path for path in api["paths"])
    for method, path, _ in ROUTES:
        if "/peer/" in path:
            continue
        described = api["paths"][path.split("?")[0].replace("{id}", "{cid}")][method.lower()]
        assert described["summary"], path
        assert described["security"], path
        if method == "POST" and not path.endswith(("seal", "discard-excluded", "unfreeze", "abandon?wave=1")):
            assert described["requestBody"]["content"], path
