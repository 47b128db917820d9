"""python -m tools.site.record: ask two live servers everything, for the examples of the REST reference."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fss_ecdf.campaign.binary_messages import UPLOAD_HEADER_BYTES, UPLOAD_ID_BYTES, UPLOAD_TYPE
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.sealed_uploads import seal_upload
from fss_ecdf.net.tokens import hash_token, new_token
from tests.harness.server_pair import LivePair, commitments, envelopes, name
from tools.site.reference import EXAMPLES

SITE = "0123456789abcdef" * 2
FIELDS = {
    "title": "Ten-year risk",
    "question": "Which risk did the score give each of your patients?",
    "epsilon": 1.0,
    "reserve": 0.5,
    "strata": ["no event", "event"],
    "min_uploads": 10,
    "variables": [
        {"name": "predicted risk", "missing": True, "grid": {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.25}}
    ],
}


def record(pair: LivePair, campaign_id: bytes) -> dict[str, dict[str, Any]]:
    """Every public route once, as a study goes: what was asked, and what server 0 answered."""
    campaign = Campaign.from_dict({**FIELDS, "id": campaign_id, "server_commitments": commitments(campaign_id)})
    token = pair.upload_tokens[campaign.id] = new_token("upload")
    fields = campaign.model_dump(mode="json", by_alias=True)
    body = {"campaign": fields, "upload_token": hash_token(token), "invitations": []}
    seen: dict[str, dict[str, Any]] = {}

    def ask(
        method: str, path: str, kind: str = "", role: int = 0, query: str = "", of: Campaign = campaign, **more: Any
    ) -> None:
        known = {"operator": pair.servers[role].operator, "analyst": pair.servers[role].analyst, "upload": token}
        with pair.client(role, known.get(kind)) as client:
            response = client.request(method, _filled(path, of) + query, **more)
        assert response.is_success, response.text
        if role == 0:
            seen[f"{method} {path}"] = _example(method, path + query, kind, more, response)

    for path in ("/healthz", "/readyz"):
        ask("GET", path)
    for role in (0, 1):
        pair.plant(role, campaign.id)
    ask("GET", "/v1/commitments/{cid}", "operator")
    for role in (1, 0):
        ask("POST", "/v1/campaigns", "operator", role, json=body)
    ask("GET", "/v1/campaigns", "operator")
    ask("GET", "/v1/campaigns/{cid}")
    for role, data in enumerate(envelopes(campaign, np.arange(40) % 13)):
        headers, sealed = {"Content-Type": UPLOAD_TYPE}, seal_upload(campaign, role, data, token)
        ask("POST", "/v1/campaigns/{cid}/uploads", "upload", role, content=sealed, headers=headers)
        first = data[UPLOAD_HEADER_BYTES:][:UPLOAD_ID_BYTES]
        ask("POST", "/v1/campaigns/{cid}/uploads/withdraw", "upload", role, content=first)
    pair.agree(campaign, 0)
    ask("DELETE", "/v1/campaigns/{cid}/seal", "operator")
    _freeze(pair, campaign)
    ask("POST", "/v1/campaigns/{cid}/unfreeze", "operator")
    for role in (1, 0):
        if role:
            pair.agree(campaign, role)
        else:
            ask("POST", "/v1/campaigns/{cid}/seal", "operator")
    pair.wait_ready(campaign)
    ask("GET", "/v1/campaigns/{cid}/status", "operator")
    ask("POST", "/v1/campaigns/{cid}/discard-excluded", "operator")
    ask("GET", "/v1/campaigns/{cid}/ecdf", "analyst", query="?at=0.25,0.5&stratum=event")
    ask("GET", "/v1/campaigns/{cid}/curve", "analyst")
    ask("GET", "/v1/campaigns/{cid}/counts", "analyst", query="?stratum=event")
    sums = {"weights": [[0, 0, 0, 1, 1, 0] * 2, [0, 25, 50, 75, 100, 0] * 2], "units": [1, 100], "epsilon": 0.25}
    ask("POST", "/v1/campaigns/{cid}/sums", "analyst", json=sums)
    ask("GET", "/v1/campaigns/{cid}/budget", "analyst")
    _ask_about_sites(ask, pair, bytes(reversed(campaign_id)))
    _ask_about_waves(ask, pair, bytes(255 - byte for byte in campaign_id))
    ask("GET", "/v1/actions", "operator", query="?last=1")
    ask("DELETE", "/v1/campaigns/{cid}", "operator")
    return seen


def _freeze(pair: LivePair, campaign: Campaign) -> None:
    """A sealing that came half-way: server 1 is frozen."""
    pair.agree(campaign, 1)
    token = (pair.folder / "server0" / "peer.token").read_text().strip()
    with pair.client(1, token) as client:
        assert client.post(f"/v1/peer/campaigns/{name(campaign)}/freeze").is_success


def _ask_about_waves(ask: Callable[..., None], pair: LivePair, campaign_id: bytes) -> None:
    pooled = [{"through": "end", "epsilon": 0.25}]
    fields = {
        **FIELDS,
        "id": campaign_id,
        "server_commitments": commitments(campaign_id),
        "reserve": 0.0,
        "epsilon": 0.5,
    }
    study = Campaign.from_dict({**fields, "waves": {"every": "manual", "count": 2, "pooled": pooled}})
    pair.create(study)
    pair.upload_values(study, np.arange(20) % 13)
    ask("GET", "/v1/campaigns/{cid}/waves", "analyst", of=study)
    with pair.operator(1) as client:
        client.post(f"/v1/campaigns/{name(study)}/abandon", params={"wave": 1})
    ask("POST", "/v1/campaigns/{cid}/abandon", "operator", of=study, query="?wave=1")


def _ask_about_sites(ask: Callable[..., None], pair: LivePair, campaign_id: bytes) -> None:
    fields = {**FIELDS, "id": campaign_id, "server_commitments": commitments(campaign_id), "admission": "sites"}
    study = Campaign.from_dict(fields)
    body = {"campaign": study.model_dump(mode="json", by_alias=True)}
    pair.plant(0, campaign_id)
    with pair.operator(0) as client:
        assert client.post("/v1/campaigns", json=body).is_success
    site = {"id": SITE, "label": "Hospital North", "token": hash_token(new_token("site")), "quota": 5000}
    path = "/v1/campaigns/{cid}/sites"
    ask("POST", path, "operator", of=study, json={"sites": [site]})
    ask("GET", path, "operator", of=study)
    ask("PATCH", path + "/{site}", "operator", of=study, json={"state": "paused"})


def _filled(path: str, campaign: Campaign) -> str:
    return path.replace("{cid}", name(campaign)).replace("{site}", SITE)


def _example(method: str, path: str, kind: str, more: dict[str, Any], response: Any) -> dict[str, Any]:
    lines = [f"{method} {path.replace('{cid}', 'ID')}"]
    lines += [f"Authorization: Bearer ({kind} token)"] if kind else []
    lines += [f"{head}: {value}" for head, value in more.get("headers", {}).items()]
    if "json" in more:
        lines += ["Content-Type: application/json", "", json.dumps(more["json"], indent=1)]
    if "content" in more:
        lines += ["", f"({len(more['content'])} bytes)"]
    is_json = response.headers["content-type"].startswith("application/json")
    answer = response.json() if is_json else "\n".join(response.text.splitlines()[:6]) + "\n..."
    return {"request": "\n".join(lines), "answer": answer}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, LivePair(Path(folder)) as live:
        EXAMPLES.write_text(json.dumps(record(live, bytes(range(32))), indent=1) + "\n")
