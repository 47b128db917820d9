"""Who may use a console: the browser with its link, once, from this machine; not another page, name or program."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.pages.console import console_page
from fss_ecdf.pages.local_server import HEADER, Answer, Asked, Console, Download, Page, Query, Routes

CHANGED: list[str] = []


def change(query: Query) -> Answer:
    CHANGED.append(query.text("what"))
    return {"done": True}


def broken(_: Query) -> Answer:
    raise RuntimeError("fss-an-secret-token")


def refused(_: Query) -> Answer:
    raise InvalidQuery("no such thing")


@pytest.fixture
def console() -> Iterator[Console]:
    get: dict[str, Asked] = {
        "/api/x": lambda query: {"x": query.number("x", 1.0)},
        "/api/file": lambda _: Download("a.html", "text/html", b"<p>"),
        "/api/broken": broken,
        "/api/refused": refused,
    }
    made = Console(
        Page("<style>$style</style><script>$script</script>", "p{}", "1;"), Routes(get, {"/api/change": change})
    )
    made.start()
    yield made
    made.close()


@pytest.fixture
def visitor(console: Console) -> Iterator[httpx.Client]:
    """Whoever opened the link."""
    with httpx.Client(base_url=f"http://127.0.0.1:{console.port}", trust_env=False) as client:
        entered = client.get(urlsplit(console.link).path, params={"secret": console.link.rpartition("=")[2]})
        assert entered.status_code == 200
        cookie = entered.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
        client.cookies.set(console.cookie, cookie.partition("=")[2].partition(";")[0])
        yield client


def test_the_link_works_once(console: Console, visitor: httpx.Client) -> None:
    assert visitor.get("/").status_code == 200
    again = httpx.get(console.link, trust_env=False)
    assert again.status_code == 403
    assert "set-cookie" not in again.headers
    assert httpx.get(console.link + "x", trust_env=False).status_code == 403


@pytest.mark.parametrize("path", ["/", "/api/x", "/api/file", "/api/nothing"])
def test_without_the_cookie_there_is_nothing(console: Console, visitor: httpx.Client, path: str) -> None:
    for cookies in ({}, {console.cookie: "wrong"}, {console.cookie: ""}):
        assert httpx.get(f"http://127.0.0.1:{console.port}{path}", cookies=cookies, trust_env=False).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{}", ""])
def test_another_name_is_refused(console: Console, visitor: httpx.Client, host: str) -> None:
    """A name that somebody's name server resolves to this machine."""
    found = visitor.get("/api/x", headers={"Host": host.format(console.port)})
    assert found.status_code == 421
    assert visitor.get("/api/x", headers={"Host": f"localhost:{console.port}"}).status_code == 200


def test_a_change_needs_our_own_header_and_page(console: Console, visitor: httpx.Client) -> None:
    CHANGED.clear()
    own = {HEADER: "1"}
    assert visitor.post("/api/change", json={"what": "a"}).status_code == 403
    assert (
        visitor.post("/api/change", json={"what": "b"}, headers={**own, "Origin": "https://evil.example"}).status_code
        == 403
    )
    assert visitor.get("/api/change").status_code == 404
    assert visitor.post("/api/x", json={}, headers=own).status_code == 404
    assert CHANGED == []
    assert visitor.post("/api/change", json={"what": "c"}, headers=own).json() == {"done": True}
    assert CHANGED == ["c"]


@pytest.mark.parametrize(("body", "status"), [(b"x" * (1 << 17), 413), (b"[]", 400), (b"{", 400), (b'{"a":1}', 400)])
def test_bad_bodies(visitor: httpx.Client, body: bytes, status: int) -> None:
    assert visitor.post("/api/change", content=body, headers={HEADER: "1"}).status_code == status


def test_every_answer_is_locked_down(console: Console, visitor: httpx.Client) -> None:
    for path in ("/", "/api/x", "/api/file", "/api/nothing", "/api/refused", "/api/broken", "/enter"):
        headers = visitor.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers
    policy = visitor.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "script-src 'sha256-" in policy


def test_faults_and_refusals_say_no_secret(visitor: httpx.Client) -> None:
    fault = visitor.get("/api/broken")
    assert (fault.status_code, "secret" in fault.text) == (500, False)
    said = visitor.get("/api/refused")
    assert (said.status_code, said.json()["detail"]) == (400, "no such thing")
    assert visitor.get("/api/x", params={"x": "one"}).status_code == 400
    assert visitor.get("/api/x", params={"x": "2.5"}).json() == {"x": 2.5}


@pytest.mark.parametrize("name", ["analyst", "operator"])
def test_the_consoles_pages_are_whole(name: str) -> None:
    page = console_page(name)
    assert "$style" not in page.text()
    assert "</script" not in page.script
    assert console_page(name) == page
