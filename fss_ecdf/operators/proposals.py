"""A campaign that travels from one organisation to the other: everything about it, and no secret.

A proposal has the whole campaign with the commitments of both servers, its digest, the hashes of the tokens that admit
parties, and where both servers are. Whoever accepts it creates the same campaign at the own server.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from fss_ecdf.campaign import json_messages
from fss_ecdf.campaign.campaign import TIME_FORMAT, Campaign, to_base64url
from fss_ecdf.campaign.errors import InvalidCampaign, InvalidQuery
from fss_ecdf.campaign.fields import Address
from fss_ecdf.campaign.files import write_durably
from fss_ecdf.campaign.parsing import parse_json
from fss_ecdf.cli.common import UsageError, free_text_lines
from fss_ecdf.net.tokens import hash_token
from fss_ecdf.operators.servers import CampaignWithTokens, ServerAddress

FORMAT = "fss-ecdf proposal 1"


class _File(json_messages.NewCampaign):
    """A proposal as it is written: what a server takes, and what only operators look at."""

    format: str
    digest: json_messages.Digest
    addresses: Annotated[list[Address], Field(min_length=2, max_length=2)]


@dataclass(frozen=True)
class Proposal:
    """What one operator asks the other one to create."""

    campaign: Campaign
    upload_token: str | None  # its hash
    invitations: list[str]  # hashes
    addresses: list[str]

    def body(self) -> dict[str, Any]:
        """As a server takes it."""
        fields = self.campaign.model_dump(mode="json", by_alias=True)
        return {"campaign": fields, "upload_token": self.upload_token, "invitations": self.invitations}


def write_proposal(path: Path, created: CampaignWithTokens, places: list[ServerAddress]) -> None:
    if len(places) < 2:
        raise UsageError(
            "a proposal names both servers: the operator file needs [peer] with url and ca of the other organisation's"
        )
    proposal = Proposal(
        created.campaign,
        created.upload_token and hash_token(created.upload_token),
        [hash_token(token) for token in created.invitations],
        [place.url for place in places],
    )
    about = {"format": FORMAT, "digest": to_base64url(created.campaign.digest), "addresses": proposal.addresses}
    write_durably(path, json.dumps({**about, **proposal.body()}, indent=1, ensure_ascii=False).encode())


def read_proposal(path: Path) -> Proposal:
    """Checked as far as it can be without asking a server; that checks the commitments."""
    try:
        fields = parse_json(path.read_bytes())
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise UsageError(f"{path}: this is not a proposal that fss-server campaign propose wrote")
    try:
        given = json_messages.read(_File, fields)
        campaign = Campaign.from_dict(given.campaign)
    except (InvalidQuery, InvalidCampaign) as problem:
        raise type(problem)(f"{path}: {problem.detail}") from None
    if given.digest != campaign.digest:
        raise UsageError(f"{path}: its digest is not that of its campaign; it was changed on the way, ask for it again")
    if campaign.server_commitments is None:
        raise UsageError(f"{path}: the campaign lacks the commitments of both servers; it was not made by propose")
    return Proposal(campaign, given.upload_token, given.invitations, given.addresses)


def describe(proposal: Proposal) -> list[str]:
    """What an operator agrees to: numbers first, then what was written by hand."""
    campaign = proposal.campaign
    admission = {
        "open": "whoever has the one upload token, which the proposer gives out",
        "invited": f"{len(proposal.invitations)} parties with an invitation each, for "
        f"{campaign.max_values_per_person} uploads",
        "sites": "sites that both operators admit, each with a quota",
    }[campaign.admission]
    sealed = "when both operators have agreed"
    if campaign.seal == "at-closing":
        sealed = "by both servers themselves, at the closing time"
    if campaign.waves is not None:
        sealed = f"in {campaign.waves.describe()}"
    lines = {
        "privacy": f"epsilon {campaign.total_epsilon:g} in all",
        "for": f"a person who gives up to {campaign.max_values_per_person} value(s)",
        "keys": campaign.key_check_text,
        "values": campaign.variable.summary,
        "strata": str(len(campaign.strata)),
        "uploads": f"at least {campaign.min_uploads}, at most {campaign.max_uploads}",
        "from": admission,
        "opens": campaign.opens.strftime(TIME_FORMAT) if campaign.opens else "at once",
        "closes": campaign.uploads_end.strftime(TIME_FORMAT) if campaign.uploads_end else "when it is sealed",
        "sealed": sealed,
        "server 0": proposal.addresses[0],
        "server 1": proposal.addresses[1],
        "id": to_base64url(campaign.id),
        "digest": f"{to_base64url(campaign.digest)}   # read it to the other operator over the phone",
    }
    return [*(f"  {name:<9} {text}" for name, text in lines.items()), *free_text_lines(campaign)]
