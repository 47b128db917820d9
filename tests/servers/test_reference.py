"""The page that says what a server can be asked: complete, and nothing on it comes from anywhere else."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from fss_ecdf.campaign.errors import problems
from servers.api.reference import operations, page
from tests.harness.server_pair import LivePair


@pytest.fixture(scope="module")
def shown(pair: LivePair) -> tuple[str, str]:
    """The page and its policy, as a browser gets them."""
    with pair.client(0) as client:
        response = client.get("/docs")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    return response.text, response.headers["content-security-policy"]


class _Links(HTMLParser):
    """Everything a browser would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found += [(name, value or "") for name, value in attrs if name in ("src", "href", "srcset", "style")]
        self.found += [(name, value or "") for name, value in attrs if name.startswith("on")]


def test_nothing_is_loaded_and_nothing_runs(shown: tuple[str, str]) -> None:
    links = _Links()
    links.feed(shown[0])
    assert links.found == [("href", "/openapi.json")]
    assert not links.tags & {"script", "link", "img", "iframe", "object", "form"}
    assert "url(" not in shown[0]
    assert "@import" not in shown[0]


def test_the_policy_allows_the_page_s_own_style_and_nothing_else(shown: tuple[str, str]) -> None:
    text, policy = shown
    style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(style) == 1
    allowed = base64.b64encode(hashlib.sha256(style[0].encode()).digest()).decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("style-src") == f"'sha256-{allowed}'"
    assert set(rules.values()) == {"'none'"}
    assert "default-src" in rules


def test_every_public_route_parameter_and_problem_is_on_it(pair: LivePair, shown: tuple[str, str]) -> None:
    with pair.client(0) as client:
        api = client.get("/openapi.json").json()
    text = shown[0]
    described = operations(api)
    assert {(o.path, o.method) for o in described} == {(p, m) for p, all in api["paths"].items() for m in all}
    for operation in described:
        section = text.split(f'<section id="{operation.anchor}">')[1].split("</section>")[0]
        assert operation.path in section
        assert ("Needs a token." in section) == operation.token
        for field in [*operation.parameters, *(f for body in operation.takes + operation.answers for f in body.fields)]:
            assert f"<code>{field.name}</code>" in section, (operation.path, field.name)
    assert len({o.anchor for o in described}) == len(described)
    assert all(f"<code>{problem.code}</code>" in text for problem in problems())
    assert "/v1/peer/" not in text.split("<h2>problems</h2>")[0]


def test_what_a_document_says_is_text_not_markup() -> None:
    about = {"tags": ["<b>"], "description": "<script>alert(1)</script>", "responses": {"200": {}}}
    text = page({"info": {"title": "<i>"}, "paths": {"/<x>": {"get": about}}, "components": {"schemas": {}}})
    assert "<script" not in text
    assert "<i>" not in text
    assert "&lt;script&gt;" in text
