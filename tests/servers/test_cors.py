"""Pages from anywhere may call a party's routes, and no other."""

import pytest

from servers.api import analysts, operators, parties, peers, public
from servers.api.cors import method_for_pages
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import new_campaign

PREFLIGHT = {"Origin": "null", "Access-Control-Request-Headers": "authorization,content-type"}
OPEN = {
    ("GET", "/v1/campaigns/{cid}"),
    ("POST", "/v1/campaigns/{cid}/uploads"),
    ("POST", "/v1/campaigns/{cid}/uploads/withdraw"),
}


def routes() -> list[tuple[str, str]]:
    found = [r for room in (analysts, operators, parties, peers, public) for r in room.router.routes]
    return [(m, str(getattr(r, "path", ""))) for r in found for m in sorted(getattr(r, "methods", ()))]


def test_only_a_partys_routes_are_open() -> None:
    opened = {(m, path) for m, path in routes() if method_for_pages(path.replace("{cid}", "x" * 43)) == m}
    assert opened == OPEN


@pytest.mark.parametrize(("method", "path"), sorted(set(routes())))
def test_what_a_browser_is_told(pair: LivePair, method: str, path: str) -> None:
    known = new_campaign()
    pair.create(known)
    address = path.replace("{cid}", name(known))
    with pair.client(0) as client:
        asked = client.options(address, headers={**PREFLIGHT, "Access-Control-Request-Method": method})
        got = client.request(method, address, headers={"Origin": "https://elsewhere.example"})
        plain = client.request(method, address)
    allowed = asked.headers.get("access-control-allow-methods", "")
    if (method, path) in OPEN:
        assert (asked.status_code, asked.headers["access-control-allow-origin"], allowed) == (204, "*", method)
        assert "authorization" in asked.headers["access-control-allow-headers"].lower()
        assert got.headers["access-control-allow-origin"] == "*"
        assert got.headers["access-control-expose-headers"] == "Retry-After"
    else:
        assert method not in allowed
        assert "access-control-allow-origin" not in got.headers
    assert not any(header.startswith("access-control") for header in plain.headers)  # bytes that only pages need
    assert "access-control-allow-credentials" not in {*asked.headers, *got.headers}
