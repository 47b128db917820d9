"""All problems that can occur between parties, servers and analysts.

Each problem has a stable code (for programs), an HTTP status and a title; its message says what was wrong, what was
expected and, where it helps, what to do. `document` is the RFC 9457 form that servers send and clients read back.

Problem
+-- InvalidInput            the caller's data; sending it again will not help
|   +-- InvalidCampaign, InvalidValue, InvalidUpload, UnreadableUpload, InvalidQuery, HeadersTooLarge, BodyTooLarge,
|       TooManyRows, BodyTooSlow, UnsupportedMediaType, SmoothingFailed, TooNoisy
+-- Refused                 the caller or the moment is wrong
|   +-- NotAuthenticated, NotAuthorised, InvitationUsed, SiteQuotaExceeded, SitePaused, SiteRevoked, SiteExists,
|       UnknownSite, NoSuchRoute, UnknownCampaign, CampaignDeleted, CampaignExists, DigestMismatch,
|       NotYetOpen, CampaignClosed, CampaignFull, CampaignSealed, NotSealed,
|       AgreementPending, TooFewUploads, UploadConflict, UploadWithdrawn, WaveClosed, WaveNotOpen,
|       BudgetExceeded, ChallengeMismatch, HpkeKeyLost, DigestNeeded
+-- TryAgain                nothing was lost; the same request may succeed later
    +-- UploadUndecided, TooManyRequests, PeerUnavailable, InvalidPeerResponse, StorageFull, StorageBusy, NotReady,
        OnHold, PeerRolledBack
"""

import json
from typing import ClassVar

from fss_ecdf.campaign.error_text import short

URN = "urn:fss-ecdf:problem:"
MOST_DETAIL = 2000  # characters of what another side says


class Problem(Exception):
    """Base of all problems. Subclasses set the code, the HTTP status and the title."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "The server has an internal error"

    def __init__(self, detail: str, *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.detail, self.retry_after = detail, retry_after

    def document(self) -> dict[str, object]:
        """The problem document of RFC 9457."""
        return {"type": URN + self.code, "title": self.title, "status": self.status, "detail": self.detail}


class InvalidInput(Problem, ValueError):
    code, status, title = "invalid-input", 400, "The request is malformed"


class InvalidCampaign(InvalidInput):
    code, status, title = "invalid-campaign", 422, "The campaign description is invalid"


class InvalidValue(InvalidInput):
    code, status, title = "invalid-value", 422, "A value or stratum does not fit the campaign"


class InvalidUpload(InvalidInput):
    code, status, title = "invalid-upload", 400, "The upload is malformed"


class UnreadableUpload(InvalidUpload):
    code, status, title = "unreadable-upload", 400, "The upload was not encrypted to this server for this campaign"


class InvalidQuery(InvalidInput):
    code, status, title = "invalid-query", 400, "The campaign does not support this query"


class HeadersTooLarge(InvalidInput):
    code, status, title = "headers-too-large", 431, "The request headers are larger than the server accepts"


class BodyTooLarge(InvalidInput):
    code, status, title = "body-too-large", 413, "The request body is larger than the server accepts"


class TooManyRows(InvalidInput):
    code, status, title = "too-many-rows", 413, "The request has more uploads than the server accepts in one request"


class UnsupportedMediaType(InvalidInput):
    code, status, title = "unsupported-media-type", 415, "The media type of the request body is not supported"


class SmoothingFailed(InvalidInput):
    code, status, title = "smoothing-failed", 422, "Smoothing failed; no result is returned"


class TooNoisy(InvalidInput):
    code, status, title = "too-noisy", 422, "The noise is too large for this statistic"


class BodyTooSlow(InvalidInput):
    code, status, title = "body-too-slow", 408, "The request body did not arrive in time"


class Refused(Problem):
    code, status, title = "refused", 403, "The request is refused"


class NotAuthenticated(Refused):
    code, status, title = "not-authenticated", 401, "The request has no valid token"


class NotAuthorised(Refused):
    code, status, title = "not-authorised", 403, "The token does not allow this"


class InvitationUsed(Refused):
    code, status, title = "invitation-used", 403, "The invitation has been used for other uploads"


class SiteQuotaExceeded(Refused):
    code, status, title = "site-quota-exceeded", 403, "The site's quota of uploads is used up"


class SitePaused(Refused):
    code, status, title = "site-paused", 403, "The operators have paused this site"


class SiteRevoked(Refused):
    code, status, title = "site-revoked", 403, "The operators have revoked this site's token"


class SiteExists(Refused):
    code, status, title = "site-exists", 409, "Another site has this id or token"


class UnknownSite(Refused):
    code, status, title = "unknown-site", 404, "The campaign has no such site on this server"


class NoSuchRoute(Refused):
    code, status, title = "no-such-route", 404, "The server has no such route"


class UnknownCampaign(Refused):
    code, status, title = "unknown-campaign", 404, "The server has no such campaign"


class CampaignDeleted(Refused):
    code, status, title = "campaign-deleted", 410, "The campaign has been deleted; its id is not used again"


class CampaignExists(Refused):
    code, status, title = "campaign-exists", 409, "Another campaign has this id"


class DigestMismatch(Refused):
    code, status, title = "digest-mismatch", 409, "The campaign digests do not match"


class NotYetOpen(Refused):
    code, status, title = "not-yet-open", 409, "The campaign is not open for uploads yet"


class CampaignClosed(Refused):
    code, status, title = "campaign-closed", 409, "The campaign is closed for uploads"


class CampaignFull(Refused):
    code, status, title = "campaign-full", 409, "The campaign already has max_uploads uploads"


class CampaignSealed(Refused):
    code, status, title = "campaign-sealed", 409, "The campaign's set of uploads is fixed"


class NotSealed(Refused):
    code, status, title = "not-sealed", 409, "The campaign is not sealed yet, so it cannot be queried"


class AgreementPending(Refused):
    code, status, title = (
        "agreement-pending",
        409,
        "This server's operator has not agreed to seal, and the closing time has not come",
    )


class TooFewUploads(Refused):
    code, status, title = "too-few-uploads", 409, "The campaign has fewer than min_uploads uploads"


class UploadConflict(Refused):
    code, status, title = "upload-conflict", 409, "Another upload has this id"


class UploadWithdrawn(Refused):
    code, status, title = "upload-withdrawn", 409, "The party withdrew this upload; its id cannot be used again"


class WaveClosed(Refused):
    code, status, title = "wave-closed", 409, "The wave of this upload is closed for uploads"


class WaveNotOpen(Refused):
    code, status, title = "wave-not-open", 409, "The wave of this upload is not open for uploads yet"


class BudgetExceeded(Refused):
    code, status, title = "budget-exceeded", 403, "The remaining epsilon of the campaign does not cover this query"


class ChallengeMismatch(Refused):
    code, status, title = (
        "challenge-mismatch",
        409,
        "The challenge differs from the one that the keys were checked with",
    )


class HpkeKeyLost(Refused):
    code, status, title = "hpke-key-lost", 503, "The server has lost its HPKE key of this campaign"


class DigestNeeded(Refused):
    code, status, title = "digest-needed", 400, "The upload does not name the digest of the campaign"


class TryAgain(Problem):
    code, status, title = "try-again", 503, "The request cannot be completed now; nothing was lost"


class UploadUndecided(TryAgain):
    code, status, title = (
        "upload-undecided",
        503,
        "The servers have not decided yet whether this upload belongs to its wave",
    )


class TooManyRequests(TryAgain):
    code, status, title = "too-many-requests", 429, "The client has sent too many requests"


class PeerUnavailable(TryAgain):
    code, status, title = "peer-unavailable", 503, "The other server does not answer"


class InvalidPeerResponse(TryAgain):
    code, status, title = "invalid-peer-response", 502, "The response of the other server is invalid"


class StorageFull(TryAgain):
    code, status, title = "storage-full", 507, "The server's disk is full; nothing was stored"


class StorageBusy(TryAgain):
    code, status, title = "storage-busy", 503, "The server's database is busy; nothing was stored"


class NotReady(TryAgain):
    code, status, title = "not-ready", 503, "The server or a job that the request needs is not ready"


class OnHold(TryAgain):
    code, status, title = (
        "on-hold",
        503,
        "The database is older than the server's recorded actions; the operator must decide",
    )


class PeerRolledBack(TryAgain):
    code, status, title = "peer-rolled-back", 503, "The other server's database is older than its recorded actions"


def problems() -> list[type[Problem]]:
    """Every kind of problem, by code: the table in docs/protocol.md."""
    kinds, queue = [], [Problem]
    while queue:
        kind = queue.pop()
        kinds.append(kind)
        queue.extend(kind.__subclasses__())
    return sorted(kinds, key=lambda kind: kind.code)


def parse_problem(data: bytes) -> Problem | None:
    """The problem in a response's body, or None if it is not a problem document."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return from_document(document) if isinstance(document, dict) else None


def from_document(document: dict[str, object]) -> Problem:
    """The problem that another side sent, as the exception to raise here; its words on one line, and not too many."""
    code, detail = str(document.get("type", "")).removeprefix(URN), short(str(document.get("detail", "")), MOST_DETAIL)
    for kind in problems():
        if kind.code == code:
            return kind(detail)
    return Problem(f"{short(str(document.get('title', 'unknown problem')))}: {detail}")
