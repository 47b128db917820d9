"""Status: where a campaign stands on a server, as its operator and the other server read it.

Servers build it, operators' programs and the operator console read it. Counts and phases, no contents. A program may
be older than a server, so fields that it does not know are ignored; a field without a value is left out.
"""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from fss_ecdf.campaign.json_messages import Digest, Message, SiteSummary

State = Literal["open", "frozen", "checking", "sealed"]


class StatusPart(Message):
    model_config = ConfigDict(extra="ignore")

    def fields(self) -> dict[str, Any]:
        """As JSON has it."""
        return self.model_dump(mode="json", exclude_none=True)


class CampaignSummary(StatusPart):
    """One campaign in a server's list."""

    id: str = Field(description="the campaign's id")
    title: str = Field(description="the campaign's title")
    state: State = Field(description="of the newest wave")
    uploads: int = Field(description="stored, in all waves")


class Trouble(StatusPart):
    """Something that does not go on: since when, and why."""

    wave: int
    what: str
    since: str
    detail: str


class WaveStatus(StatusPart):
    """Where one wave stands; a plain campaign has one."""

    number: int
    state: State
    uploads: int = Field(description="stored for it or, once its set is fixed, in the set")
    rejected: int = Field(description="uploads that failed the check")
    operator_agreed: bool = Field(description="whether this server's operator has agreed to seal it")
    abandoned: bool = Field(default=False, description="whether both operators abandoned it: its parties upload again")
    abandon_agreed: bool = Field(default=False, description="whether this server's operator has agreed to abandon it")
    unmatched: int | None = Field(default=None, description="uploads that only this server had")
    checksum: str | None = Field(default=None, description="of its set, once that is fixed")
    phase: str | None = Field(default=None, description="of the job that goes on with its set")
    progress: float | None = Field(default=None, description="of that phase, 0 to 1")
    problem: str | None = Field(default=None, description="why that job failed")


class Status(CampaignSummary):
    """Where a campaign stands on one server: its newest wave, and each of its waves."""

    server: Literal[0, 1] = Field(description="which server this is")
    digest: Digest
    min_uploads: int = Field(description="the fewest uploads that are released")
    operator_agreed: bool = Field(description="whether this server's operator has agreed to seal the newest wave")
    freeze_number: int = Field(ge=0, lt=1 << 63, description="how often the newest wave was frozen")
    seal: str = Field(description="by-agreement or at-closing")
    closes: str | None = Field(default=None, description="when uploads end, if that is a matter of time")
    closed: bool = Field(description="whether the time for uploads is over")
    check_keys: bool = Field(description="whether servers check keys")
    rejected: int = Field(description="uploads of the newest wave that failed the check")
    on_hold: str | None = Field(default=None, description="why this server seals, spends and discloses nothing")
    peer_rolled_back: str | None = Field(default=None, description="that the other server's database is older")
    hpke_key_lost: bool = Field(description="whether this server lost the key that opens uploads")
    troubles: list[Trouble] = Field(default_factory=list, description="what does not go on, since when, and why")
    wave: int = Field(description="the number of the newest wave")
    waves: list[WaveStatus] = Field(min_length=1, description="where each stands")
    planned_waves: int | None = Field(default=None, description="how many, of a campaign of waves")
    epsilon_for_party: float = Field(description="what whoever joins the newest wave consents to")
    closes_itself: bool = Field(description="whether the newest wave closes without the operators")
    sealed_uploads: int | None = Field(default=None, description="in the newest wave's set, once it is fixed")
    unmatched: int | None = Field(default=None, description="uploads of the newest wave that only this server had")
    excluded_stored: int | None = Field(default=None, description="excluded uploads that are not discarded")
    too_few: bool | None = Field(default=None, description="true: too few passed the check, nothing is released")
    checksum: str | None = Field(default=None, description="of the newest wave's set, once that is fixed")
    phase: str | None = Field(default=None, description="of the job that goes on with that set")
    progress: float | None = Field(default=None, description="of that phase, 0 to 1")
    problem: str | None = Field(default=None, description="why that job failed")
    peer: "Status | StatusProblem | None" = Field(default=None, description="what the other server says of it")
    sites: list[SiteSummary] | None = Field(default=None, description="uploads and quota of each site")

    @property
    def is_fixed(self) -> bool:
        """Whether the set of the newest wave is fixed."""
        return self.state in ("checking", "sealed")

    def of_wave(self, number: int) -> WaveStatus | None:
        return next((wave for wave in self.waves if wave.number == number), None)


class StatusProblem(StatusPart):
    """Why a server says nothing of a campaign."""

    server: Literal[0, 1] | None = None
    problem: str = Field(description="the code of the problem")
    detail: str
