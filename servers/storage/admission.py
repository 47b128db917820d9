"""May this come in? Everything that decides it, in one place: who, when, in which form, and how many.

Nothing here touches a database or a network. The route of uploads asks the first three questions, the storage the last
one, inside the transaction in which it writes.
"""

import hmac
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from fss_ecdf.campaign.binary_messages import Row, upload_rows
from fss_ecdf.campaign.campaign import TIME_FORMAT, Campaign
from fss_ecdf.campaign.contribution import ONE_KEY, Contribution
from fss_ecdf.campaign.errors import (
    CampaignClosed,
    CampaignFull,
    CampaignSealed,
    InvitationUsed,
    NotAuthenticated,
    NotAuthorised,
    NotYetOpen,
    Problem,
    SitePaused,
    SiteQuotaExceeded,
    SiteRevoked,
    UploadConflict,
    UploadWithdrawn,
    WaveClosed,
    WaveNotOpen,
)
from fss_ecdf.campaign.sealed_uploads import Opener, open_upload

# How often a campaign or an invitation may be filled anew by withdrawing: it bounds the ids to be remembered.
REFILLS = 10
# Ids that one token may withdraw before they arrived, beyond as many as it may upload.
SPARE_WITHDRAWALS = 1000

Failures = list[tuple[bytes, Problem]]


@dataclass(frozen=True)
class NewUploads:
    """Uploads of one request, all for one wave, and who sent them: an invitation's hash or a site's id."""

    campaign: bytes
    rows: Sequence[Row]
    sender: str | None = None
    refusal: Problem | None = None  # why nothing new may be added now; what is stored already is still acknowledged
    contribution: Contribution = ONE_KEY  # what each of them brings
    share: Sequence[bytes] = ()  # of a table, in parts: then there is one row

    def __repr__(self) -> str:
        return f"<NewUploads {len(self.rows)} for wave {self.wave}>"

    @property
    def wave(self) -> int:
        return self.contribution.wave

    @property
    def ids(self) -> list[bytes]:
        return [upload_id for upload_id, _, _ in self.rows]

    @property
    def people(self) -> int:
        """That each row stands for."""
        return self.contribution.people


ACTIVE, PAUSED, REVOKED = "active", "paused", "revoked"


@dataclass(frozen=True)
class Site:
    """Somebody who sends values of many parties, like a hospital. The unit of privacy stays the party."""

    id: str
    label: str
    token: str  # its hash
    quota: int
    state: str = ACTIVE

    def __repr__(self) -> str:
        return f"<Site {self.id}>"


@dataclass(frozen=True)
class Caller:
    """What the hash of a caller's token opens here."""

    given: str
    invited: bool = False
    site: Site | None = None
    role: str | None = None  # of the server's own tokens


def identify_sender(campaign: Campaign, upload_token: str | None, caller: Caller) -> str | None:
    """Who: the holder of the campaign's token, or of an invitation or a site's token; what uploads remember of it."""
    given, role = caller.given, caller.role
    if caller.site is not None:
        if caller.site.state == REVOKED:
            raise SiteRevoked("this site's token was revoked by the operators; ask them what to do")
        return caller.site.id
    if campaign.admission == "open":
        if upload_token is not None and hmac.compare_digest(given, upload_token):
            return None
    elif caller.invited:
        return given
    if role is not None:
        raise NotAuthorised(f"uploading needs a token that the campaign gives to parties, not the {role} token")
    raise NotAuthenticated("the token is not known for this campaign")


def closed_reason(campaign: Campaign, now: datetime) -> Problem | None:
    """When: why the campaign takes nothing new at this moment."""
    if campaign.opens is not None and now < campaign.opens:
        return NotYetOpen(f"uploads start at {campaign.opens.strftime(TIME_FORMAT)}")
    if is_closed(campaign, now):
        assert campaign.uploads_end is not None
        return CampaignClosed(f"uploads ended at {campaign.uploads_end.strftime(TIME_FORMAT)}")
    return None


def is_closed(campaign: Campaign, now: datetime) -> bool:
    return campaign.uploads_end is not None and now >= campaign.uploads_end


def decrypt_rows(
    data: bytes, campaign: Campaign, server: int, token: bytes, open_part: Opener
) -> tuple[Contribution, list[Row]]:
    """The uploads that travelled with a token of this hash, decrypted, and what each of them brings."""
    return upload_rows(open_upload(data, campaign, server, token, open_part), campaign, server)


def seals_at_closing(campaign: Campaign, now: datetime) -> bool:
    """Everybody agreed, in the campaign itself, that it is sealed now."""
    return campaign.seal == "at-closing" and is_closed(campaign, now)


@dataclass(frozen=True)
class UploadContext:
    """What the storage knows at the moment of writing."""

    campaign: Campaign
    is_open: bool  # the newest wave
    wave: int  # its number
    stored: int  # people whose values the campaign has
    erased: int  # and how many more uploads were stored and withdrawn
    used: int  # people whose values the sender sent
    reused: int  # and how many more of theirs were stored and withdrawn
    site: Site | None  # the sender, where it is one
    known: Mapping[bytes, bytes]  # leaves of those of the request's ids that are stored
    gone: AbstractSet[bytes]  # those of its ids that were withdrawn or excluded


@dataclass(frozen=True)
class AdmissionDecision:
    """What is to be stored, and what fails and why; or why the whole request is refused."""

    fresh: Sequence[Row] = ()
    failures: Sequence[tuple[bytes, Problem]] = ()
    refusal: Problem | None = None


def decide(request: NewUploads, facts: UploadContext) -> AdmissionDecision:
    """How many: byte-identical retries are welcome at any time, anything new while there is room."""
    failures: Failures = []
    fresh: list[Row] = []
    for row in request.rows:
        upload_id, leaf, _ = row
        if upload_id in facts.known:
            if facts.known[upload_id] != leaf:
                failures.append((upload_id, UploadConflict("an upload with this id and other bytes is stored already")))
        elif upload_id in facts.gone:
            failures.append((upload_id, UploadWithdrawn("an upload with this id was withdrawn")))
        else:
            fresh.append(row)
    if not fresh:
        return AdmissionDecision(failures=failures)
    refusal = _nothing_new(request, facts)
    if refusal is not None:
        return AdmissionDecision(refusal=refusal)
    full = _full(request, facts, len(fresh) * request.people)
    if full is not None:
        return AdmissionDecision(failures=[*failures, *((upload_id, full) for upload_id, _, _ in fresh)])
    return AdmissionDecision(fresh, failures)


def _not_in_time(wave: int, facts: UploadContext) -> Problem | None:
    """Uploads are for the open wave or, since the other server may have closed this one already, for the next.

    What comes for a wave that is closed is not stored: it would be in no set, or meet a second challenge.
    """
    last = facts.campaign.last_wave
    if (wave == facts.wave and facts.is_open) or wave == facts.wave + 1 <= last:
        return None
    if wave == facts.wave == last:
        return CampaignSealed("the campaign is being sealed or is sealed; nothing can be added")
    if wave > facts.wave:
        return WaveNotOpen(f"wave {facts.wave} is open here, and the next one is taken; this upload is for {wave}")
    return WaveClosed(
        f"wave {wave} is closed here, wave {facts.wave} is open; send new keys for it when both servers have confirmed "
        "that these uploads do not count"
    )


def refused_unread(request: NewUploads, facts: UploadContext, count: int) -> Problem | None:
    """Why nothing of a request of `count` people's values will be stored, unless it is a retry of what is stored."""
    return _nothing_new(request, facts) or _full(request, facts, count)


def _nothing_new(request: NewUploads, facts: UploadContext) -> Problem | None:
    closed = _not_in_time(request.wave, facts)
    if closed is not None:
        return closed
    if request.refusal is not None:
        return request.refusal
    if facts.site is not None and facts.site.state != ACTIVE:
        return _not_active(facts.site)
    return None


def _full(request: NewUploads, facts: UploadContext, fresh: int) -> Problem | None:
    most = facts.campaign.max_uploads
    if facts.stored + fresh > most:
        return CampaignFull(f"the campaign takes {most} uploads and has {facts.stored}")
    if facts.erased + facts.stored + fresh > REFILLS * most:
        return CampaignFull(f"{facts.erased} uploads of this campaign were withdrawn; it takes no more")
    if request.sender is None:
        return None
    if facts.site is not None:
        return _site_full(facts.site, facts, fresh)
    each = facts.campaign.max_values_per_person
    if facts.used + fresh > each:
        return InvitationUsed(f"an invitation is good for {each} uploads; {facts.used} are stored")
    if facts.reused + facts.used + fresh > REFILLS * each:
        return InvitationUsed(f"{facts.reused} uploads of this invitation were withdrawn; it takes no more")
    return None


def _not_active(site: Site) -> Problem:
    if site.state == PAUSED:
        return SitePaused("this site is paused by the operators; what it sent stays, and nothing new is taken")
    return SiteRevoked("this site's token was revoked by the operators; ask them what to do")


def _site_full(site: Site, facts: UploadContext, fresh: int) -> Problem | None:
    if facts.used + fresh > site.quota:
        return SiteQuotaExceeded(
            f"this site may send {site.quota} uploads; {facts.used} are stored and {fresh} more came"
        )
    if facts.reused + facts.used + fresh > REFILLS * site.quota:
        return SiteQuotaExceeded(f"{facts.reused} uploads of this site were withdrawn; it takes no more")
    return None


def early_withdrawals(campaign: Campaign, sender: str | None, site: Site | None) -> int:
    """How many ids a sender may withdraw that have not arrived."""
    if site is not None:
        return SPARE_WITHDRAWALS + site.quota
    return SPARE_WITHDRAWALS + (campaign.max_uploads if sender is None else campaign.max_values_per_person)
