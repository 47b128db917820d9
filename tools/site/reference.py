"""Reference pages made of the code: command lines from their parsers, routes from OpenAPI, the rest from docstrings."""

import argparse
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from fastapi import FastAPI

import analyst.cli
import dealer.cli
import fss_ecdf.cli.server
from analyst.options import options_of
from analyst.registry import statistics
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.commitments import ServerCommitment
from fss_ecdf.campaign.errors import problems
from fss_ecdf.campaign.grid import ExplicitGrid, LinearGrid, LogGrid
from fss_ecdf.campaign.variable import Variable
from fss_ecdf.campaign.waves import Pooled, Waves
from servers.api.app import ROUTES
from servers.api.reference import Body, Field, Operation, operations
from tools.site import files
from tools.site.kinds import DOCS
from tools.site.signatures import signature

EXAMPLES = DOCS / "examples.json"
PARSERS = {"fss-server": fss_ecdf.cli.server, "fss-dealer": dealer.cli, "fss-analyst": analyst.cli}
# What a program of somebody else may rely on.
MODULES = (
    "analyst",
    "dealer",
    "fss_ecdf.campaign.campaign",
    "fss_ecdf.campaign.noise.planning",
    "fss.dcf",
    "fss.dpf",
    "fss.field",
)


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command of every program, by its whole name."""
    for module in PARSERS.values():
        parser: argparse.ArgumentParser = module._parser()
        yield from _below(parser)


def _below(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield parser.prog, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _below(child)


def command_lines() -> str:
    os.environ["COLUMNS"] = "82"  # argparse wraps to the terminal; here it is a column of the page
    parts = ["# Command lines\n\nWhat each program says when it is asked with `--help`.\n"]
    for name, parser in parsers():
        parts.append(f"{'##' if name in PARSERS else '###'} {name}\n\n```text\n{parser.format_help().rstrip()}\n```\n")
    return "\n".join(parts)


def api() -> dict[str, Any]:
    """The OpenAPI document of a server, without one."""
    app = FastAPI(title="fss-ecdf server", version="1")
    for room in ROUTES:
        app.include_router(room.router)
    return app.openapi()


def rest() -> str:
    examples = json.loads(EXAMPLES.read_text())
    parts = [
        "# REST\n\nA server's public routes, made of its OpenAPI document. Requests and answers were recorded from "
        "two live servers by `python -m tools.site.record`. Every route can also be answered by a "
        "[problem](problems.md). `GET /docs` of a server has the same page without examples.\n"
    ]
    for operation in operations(api()):
        parts.append(_operation(operation, examples[key_of(operation)]))
    return "\n".join(parts)


def key_of(operation: Operation) -> str:
    return f"{operation.method.upper()} {operation.path}"


def _operation(of: Operation, example: dict[str, Any]) -> str:
    lines = [f"## {key_of(of)}\n", of.about, _token(of, example)]
    lines += [_table("Parameters", of.parameters), *(_body("Takes", body) for body in of.takes)]
    lines += [_body(f"Answers {of.status},", body) for body in of.answers]
    lines += ["", "```http", example["request"], "```", "", f"```json\n{_pretty(example['answer'])}\n```", ""]
    return "\n".join(lines)


def _token(of: Operation, example: dict[str, Any]) -> str:
    """Which token a route needs, as in its example."""
    if not of.token:
        return ""
    used = re.search(r"Bearer \((.+?)\)", example["request"])
    return f"\nNeeds a token; the example has the {used[1]}.\n" if used else "\nNeeds a token.\n"


def _pretty(answer: object) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, indent=1, ensure_ascii=False)


def _body(what: str, body: Body) -> str:
    return f"\n{what} `{body.media_type}`" + (f":\n{_table('', body.fields)}" if body.fields else ".\n")


def _table(title: str, fields: list[Field]) -> str:
    if not fields:
        return ""
    rows = [f"| `{f.name}` | {f.type} | {'yes' if f.required else ''} | {f.about} |" for f in fields]
    head = ["", f"{title}:" if title else "", "", "| name | type | required | meaning |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows, ""])


def campaign_fields() -> str:
    said = "As the program has them. [Campaigns](../campaigns.md) says what each is for, with examples."
    parts = [f"# Fields of a campaign\n\n{said}\n", _model("", Campaign)]
    for title, model in (
        ("Variable", Variable),
        ("Linear grid", LinearGrid),
        ("Logarithmic grid", LogGrid),
        ("Explicit grid", ExplicitGrid),
        ("Waves", Waves),
        ("Pooled releases of waves", Pooled),
        ("Commitments of servers", ServerCommitment),
    ):
        parts.append(_model(f"## {title}\n", model))
    return "\n".join(parts)


def _model(title: str, model: Any) -> str:
    properties = model.model_json_schema(by_alias=True, mode="serialization")["properties"]
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    rows = []
    for name, field in fields.items():
        default = "needed" if field.is_required() else f"`{json.dumps(field.default, default=str)}`"
        rows.append(f"| `{name}` | {_words(properties[name])} | {default} |")
    about = inspect.cleandoc(model.__doc__ or "")
    return "\n".join([title, about, "", "| field | what | default |", "| --- | --- | --- |", *rows, ""])


def _words(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{choice}`" for choice in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_words(one) for one in schema["anyOf"]))
    if schema.get("type") == "array" and "items" in schema:
        return f"list of {_words(schema['items'])}"
    limits = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
    said = [f"{word} {schema[name]}" for name, word in limits.items() if name in schema]
    said += [f"at most {schema['maxLength']} characters"] if "maxLength" in schema else []
    return ", ".join([str(schema.get("type", "object")), *said])


def problem_codes() -> str:
    rows = [f"| `{kind.code}` | {kind.status} | {kind.title} |" for kind in problems()]
    head = "# Problems\n\nWhat goes wrong is answered as a document of RFC 9457 (`application/problem+json`), with\n"
    head += "`type` = `urn:fss-ecdf:problem:CODE`. Codes are stable; programs may act on them.\n"
    return "\n".join([head, "| code | status | meaning |", "| --- | --- | --- |", *rows, ""])


_SHORT_NAMES = """Some types have short names:

- `Values`: a number, a text or a date, or many of them: a list, an array, a column of a data frame
- `Strata`: the name of one stratum for all values, or one for each
- `Stratum`: a name, several that are pooled, or `None` for all
- `Smoothing`: "none", "isotonic", "limited", "l1" or "l2"
- `ClientOptions`: `timeout_s` and `patience_s`, how long a server is waited for; `on_grid`; `wave`, `through` or
  `pooled`
"""


def python() -> str:
    parts = [f"# Python\n\nWhat programs of your own may rely on, from its docstrings.\n\n{_SHORT_NAMES}"]
    for name in MODULES:
        module = import_module(name)
        parts.append(f"## {name}\n\n{_doc(module)}\n")
        public = getattr(module, "__all__", None) or [n for n, item in vars(module).items() if _is_own(n, item, name)]
        items = [getattr(module, n) for n in public]
        parts += [_item(item) for item in items if inspect.isclass(item) or inspect.isroutine(item)]
    return "\n".join(parts)


def statistics_page() -> str:
    """What can be computed from a sealed campaign, from the analysts' registry."""
    parts = [
        "# Statistics\n\nEach statistic is a command of `fss-analyst` and a method of `analyst.Client`, of\n"
        "`analyst.AsyncClient` (awaited) and of `analyst.Release` (without the server). "
        "`fss-server campaign preview` prints which of them a campaign supports.\n\n" + _SHORT_NAMES
    ]
    for entry in statistics().values():
        needs = ", ".join(need.words for need in entry.needs) or "nothing: every campaign supports it"
        shown = signature(f"client.{entry.method}", entry.compute, skip=1)
        doc = (
            inspect.cleandoc(entry.compute.__doc__ or "")
            .replace("\nReturns", "\n\nReturns")
            .replace("\nRaises", "\n\nRaises")
        )
        parts.append(f"## {entry.title}\n\n`fss-analyst {entry.name}`\n\n```python\n{shown}\n```\n\n{doc}\n")
        parts.append(f"Needs: {needs}.\n")
        rows = [
            f"| `{option.flag or '--' + parameter.name.replace('_', '-')}` | `{parameter.name}` | {option.help} |"
            for parameter, option in options_of(entry.compute)
        ]
        parts.append("\n".join(["| option | parameter | meaning |", "| --- | --- | --- |", *rows, ""]))
    return "\n".join(parts)


def _is_own(name: str, item: Any, module: str) -> bool:
    """Not what a module imports for itself."""
    return not name.startswith("_") and getattr(item, "__module__", "") == module


def _item(item: Any) -> str:
    lines = [f"### {item.__name__}\n", _signature(item.__name__, item), f"\n{_doc(item)}\n"]
    if inspect.isclass(item):
        for name, member in vars(item).items():
            if inspect.isfunction(member) and not name.startswith("_") and member.__doc__:
                lines.append(f"{_signature(f'{item.__name__}.{name}', member)}\n\n{_doc(member)}\n")
    return "\n".join(lines)


def _signature(name: str, item: Callable[..., Any]) -> str:
    return f"```python\n{signature(name, item)}\n```"


def _doc(item: Any) -> str:
    """A docstring as Markdown: examples and figures keep their lines."""
    text = inspect.cleandoc(item.__doc__ or "")
    blocks = [
        f"```pycon\n{block}\n```" if block.startswith(">>>") else f"```text\n{block}\n```" if "    " in block else block
        for block in text.split("\n\n")
    ]
    return "\n\n".join(blocks)


PAGES: dict[str, Callable[[], str]] = {
    "reference/cli.md": command_lines,
    "reference/rest.md": rest,
    "reference/campaign-fields.md": campaign_fields,
    "reference/problems.md": problem_codes,
    "reference/statistics.md": statistics_page,
    "reference/python.md": python,
    "reference/files.md": files.page,
}
