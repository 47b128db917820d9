"""Noting what an operator asked for, and what became of it."""

import json
from collections.abc import Awaitable
from typing import TypeVar

from fss_ecdf.campaign.campaign import TIME_FORMAT
from fss_ecdf.campaign.errors import Problem
from servers import log
from servers.server import Server
from servers.storage.action_log import LoggedAction

T = TypeVar("T")


async def record_action(server: Server, action: str, campaign: str, work: Awaitable[T], **details: object) -> T:
    """What `work` gives, with a row in the log of actions; `details` holds counts, labels and ids, never a token."""
    outcome = "internal"
    try:
        result = await work
        outcome = "done"
        return result
    except Problem as problem:
        outcome = problem.code
        raise
    finally:
        at, text = server.clock().strftime(TIME_FORMAT), json.dumps(details, ensure_ascii=False)
        row = LoggedAction(at, action, campaign[:43], outcome, text)
        try:
            await server.writer.run(lambda: server.storage.actions.add(row))
        except Problem as problem:  # a full disk must not keep an operator from deleting
            log.event("action-not-noted", level="warning", action=action, campaign=campaign[:43], code=problem.code)
