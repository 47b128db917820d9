"""The route by which an operator reads what operators did at this server."""

import asyncio
import json
from collections import deque
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from servers.api import auth
from servers.api.auth import OPERATOR
from servers.api.requests import BEARER
from servers.storage.action_log import ActionLog

router = APIRouter()

MOST = 1000


@router.get("/v1/actions", tags=["operation"], dependencies=[BEARER])
async def read(
    request: Request, last: Annotated[int, Query(ge=1, le=MOST, description="how many, the newest")] = 100
) -> JSONResponse:
    """What operators asked for here and what became of it, oldest first, and whether the whole log holds together."""
    server = auth.require(request, OPERATOR)
    return JSONResponse(await asyncio.to_thread(latest, server.storage.actions, last))


def latest(actions: ActionLog, last: int) -> dict[str, object]:
    rows, is_valid = deque[dict[str, object]](maxlen=last), True
    for number, action, digest, holds in actions.all():
        is_valid = holds
        rows.append({"number": number, **vars(action), "details": json.loads(action.details), "digest": digest.hex()})
    return {"chain_valid": is_valid, "actions": list(rows)}
