"""What a server can be asked, as data and as a page: the OpenAPI document, with nothing fetched from anywhere.

The page is one document without scripts, so that it opens where networks are closed and under the strictest policy.
"""

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from fss_ecdf.campaign.errors import problems

router = APIRouter()

STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #8886; text-transform: capitalize }
section { margin: 1.5rem 0 }
h3, code, pre { font-family: ui-monospace, monospace }
h3 { font-size: 1rem; overflow-wrap: anywhere }
h3 b { display: inline-block; min-width: 4.5rem }
pre { background: #8882; padding: .6rem; overflow-x: auto; font-size: .85rem }
table { border-collapse: collapse; font-size: .9rem }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8884 }
@media print { body { max-width: none } section { break-inside: avoid } pre { white-space: pre-wrap } }
"""


def _policy() -> str:
    style = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    nothing = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return f"{nothing}; style-src 'sha256-{style}'"


HEADERS = {
    "Content-Security-Policy": _policy(),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@dataclass(frozen=True)
class Field:
    name: str
    type: str
    required: bool
    about: str


@dataclass(frozen=True)
class Body:
    media_type: str
    fields: list[Field]
    example: object = None


@dataclass(frozen=True)
class Operation:
    """One route and method: what it takes and what it answers when all is well."""

    method: str
    path: str
    group: str
    about: str
    token: bool
    parameters: list[Field]
    takes: list[Body]
    status: str
    answers: list[Body]

    @property
    def anchor(self) -> str:
        return "-".join([self.method, *self.path.replace("{", "").replace("}", "").split("/")]).replace("--", "-")

    @property
    def curl(self) -> str:
        parts = ["curl", "--cacert ca.pem"] + ([] if self.method == "get" else [f"--request {self.method.upper()}"])
        parts += ['--header "Authorization: Bearer $TOKEN"'] if self.token else []
        for body in self.takes:
            sent = "@upload.bin" if body.example is None else f"'{json.dumps(body.example)}'"
            parts += [f"--header 'Content-Type: {body.media_type}'", f"--data-binary {sent}"]
        query = "&".join(f"{p.name}=..." for p in self.parameters if p.required and f"{{{p.name}}}" not in self.path)
        return " ".join([*parts, f"'https://SERVER{self.path}{'?' + query if query else ''}'"])


def operations(api: dict[str, Any]) -> list[Operation]:
    """The routes of an OpenAPI document, in its order."""
    return [_operation(api, path, method, what) for path, all in api["paths"].items() for method, what in all.items()]


def _operation(api: dict[str, Any], path: str, method: str, what: dict[str, Any]) -> Operation:
    parameters = [
        Field(p["name"], _type(api, p["schema"]), p.get("required", False), p.get("description", ""))
        for p in what.get("parameters", [])
    ]
    status, answer = next((code, answer) for code, answer in what["responses"].items() if code.startswith("2"))
    takes = list(_bodies(api, what.get("requestBody", {})))
    about, token = what.get("description", ""), bool(what.get("security"))
    return Operation(method, path, what["tags"][0], about, token, parameters, takes, status, list(_bodies(api, answer)))


def _bodies(api: dict[str, Any], of: dict[str, Any]) -> Iterator[Body]:
    for media_type, content in of.get("content", {}).items():
        schema = _followed(api, content.get("schema", {}))
        required = schema.get("required", [])
        fields = [
            Field(name, _type(api, field), name in required, field.get("description", ""))
            for name, field in schema.get("properties", {}).items()
        ]
        yield Body(media_type, fields, content.get("example"))


def _followed(api: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The schema that a reference names."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = api["components"]["schemas"][name] if name else schema
    return found


def _type(api: dict[str, Any], schema: dict[str, Any]) -> str:
    """A type in a few words."""
    schema = _followed(api, schema)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(api, one) for one in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(api, schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def page(api: dict[str, Any]) -> str:
    """The whole document as one page of HTML."""
    groups: dict[str, list[Operation]] = {}
    for operation in operations(api):
        groups.setdefault(operation.group, []).append(operation)
    rooms = "".join(f"<h2>{escape(name)}</h2>{''.join(map(_section, all))}" for name, all in groups.items())
    codes = _table(("code", "status", "meaning"), [(f"<code>{p.code}</code>", p.status, p.title) for p in problems()])
    title, about = escape(api["info"]["title"]), escape(api["info"].get("description", "")).replace("\n\n", "<p>")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style>'
        f'<h1>{title}</h1><p>{about}<p>For programs: <a href="/openapi.json">openapi.json</a>.{rooms}'
        f"<h2>problems</h2><p>What goes wrong is answered as <code>application/problem+json</code>.{codes}</html>"
    )


def _section(of: Operation) -> str:
    paragraphs = "".join(f"<p>{escape(text)}" for text in of.about.split("\n\n"))
    token = "<p>Needs a token." if of.token else ""
    takes = "".join(f"<p>Takes <code>{escape(b.media_type)}</code>{_body(b)}" for b in of.takes)
    answers = "".join(f"<p>Answers {of.status}, <code>{escape(b.media_type)}</code>{_body(b)}" for b in of.answers)
    return (
        f'<section id="{escape(of.anchor)}"><h3><b>{of.method.upper()}</b> {escape(of.path)}</h3>{paragraphs}{token}'
        f"{_fields(of.parameters)}{takes}{answers}<pre>{escape(of.curl)}</pre></section>"
    )


def _body(body: Body) -> str:
    example = "" if body.example is None else f"<pre>{escape(json.dumps(body.example, indent=1))}</pre>"
    return _fields(body.fields) + example


def _fields(fields: list[Field]) -> str:
    rows = [
        (f"<code>{escape(f.name)}</code>", escape(f.type), "yes" if f.required else "", escape(f.about)) for f in fields
    ]
    return _table(("name", "type", "required", "meaning"), rows) if rows else ""


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = "".join(f"<tr>{''.join(f'<td>{cell}' for cell in row)}" for row in rows)
    return f"<table><tr>{''.join(f'<th>{name}' for name in head)}{lines}</table>"


@router.get("/docs", include_in_schema=False)
async def show(request: Request) -> HTMLResponse:
    """What this server can be asked. The same for everybody: it is made of the program alone."""
    return HTMLResponse(page(request.app.openapi()), headers=HEADERS)
