"""python -m tools.site.record: ask two live servers everything, for the examples of the REST reference."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from campaign.spec import Campaign
from campaign.wire import UPLOAD_TYPE
from client.tokens import hash_token, new_token
from harness.live import Pair, envelopes, name, pledges
from tools.site.reference import EXAMPLES

FIELDS = {
    "title": "Ten-year risk",
    "question": "Which risk did the score give each of your patients?",
    "epsilon": 1.0,
    "reserve": 0.5,
    "strata": ["no event", "event"],
    "min_uploads": 10,
    "grid": {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.25},
}


def record(pair: Pair, campaign_id: bytes) -> dict[str, dict[str, Any]]:
    """Every public route once, as a study goes: what was asked, and what server 0 answered."""
    campaign = Campaign.from_dict({**FIELDS, "id": campaign_id, "servers": pledges(campaign_id)})
    token = pair.upload_tokens[campaign.id] = new_token("upload")
    fields = campaign.model_dump(mode="json", by_alias=True)
    body = {"campaign": fields, "upload_token": hash_token(token), "invitations": []}
    seen: dict[str, dict[str, Any]] = {}

    def ask(method: str, path: str, kind: str = "", role: int = 0, query: str = "", **more: Any) -> None:
        known = {"operator": pair.servers[role].operator, "analyst": pair.servers[role].analyst, "upload": token}
        with pair.client(role, known.get(kind)) as client:
            response = client.request(method, path.replace("{cid}", name(campaign)) + query, **more)
        assert response.is_success, response.text
        if role == 0:
            seen[f"{method} {path}"] = _example(method, path + query, kind, more, response)

    for path in ("/healthz", "/readyz"):
        ask("GET", path)
    ask("GET", "/v1/pledges/{cid}", "operator")
    for role in (1, 0):
        ask("POST", "/v1/campaigns", "operator", role, json=body)
    ask("GET", "/v1/campaigns", "operator")
    ask("GET", "/v1/campaigns/{cid}")
    for role, data in enumerate(envelopes(campaign, np.arange(40) % 13)):
        headers = {"Content-Type": UPLOAD_TYPE}
        ask("POST", "/v1/campaigns/{cid}/uploads", "upload", role, content=data, headers=headers)
        ask("POST", "/v1/campaigns/{cid}/uploads/withdraw", "upload", role, content=data[48:64])
    for role in (1, 0):
        if role:
            pair.agree(campaign, role)
        else:
            ask("POST", "/v1/campaigns/{cid}/seal", "operator")
    pair.wait_ready(campaign)
    ask("GET", "/v1/campaigns/{cid}/status", "operator")
    ask("POST", "/v1/campaigns/{cid}/confirm", "operator")
    ask("GET", "/v1/campaigns/{cid}/ecdf", "analyst", query="?at=0.25,0.5&stratum=event")
    ask("GET", "/v1/campaigns/{cid}/curve", "analyst")
    ask("POST", "/v1/campaigns/{cid}/groups", "analyst", json={"upper_ends": [0.5, 1.0], "epsilon": 0.25})
    ask("GET", "/v1/campaigns/{cid}/budget", "analyst")
    ask("GET", "/metrics", "operator")
    ask("DELETE", "/v1/campaigns/{cid}", "operator")
    return seen


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
    with tempfile.TemporaryDirectory() as folder, Pair(Path(folder)) as live:
        EXAMPLES.write_text(json.dumps(record(live, bytes(range(32))), indent=1) + "\n")
