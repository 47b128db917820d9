"""What an auditor does: compute everything that one server signed again, and compare."""

from pathlib import Path

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.json_messages import read
from servers.audit.material import About, Export
from servers.audit.messages import check_audits
from servers.audit.shares import release_audits
from servers.audit.verdict import HONEST, NOTHING, WRONG, Finding, Nothing, Wrong, finding


def verify(keys: Path, evidence: Path, digest: str) -> list[Finding]:
    """Every finding about the server whose keys these are. A file that is missing is an OSError.

    `digest` is the campaign's, from neither server: parties and analysts have it. The keys by which servers sign and
    the commitments to their parts of the challenge stand in the campaign, so whoever could put another campaign in
    could sign for the other server.
    """
    try:
        campaign = _campaign(keys, evidence, digest)
    except Nothing as nothing:
        return [Finding("campaign", NOTHING, str(nothing))]
    export = Export(keys, campaign)
    findings = [
        Finding("campaign", HONEST),
        finding("uploads handed over", export.server, lambda: _uploads(export, evidence)),
    ]
    if findings[-1].verdict != HONEST:
        return findings
    for check in check_audits(export, evidence):
        findings += check.findings()
    for release in release_audits(export, evidence):
        findings += release.findings()
    if not any(found.numbers or found.verdict == WRONG for found in findings):
        detail = f"server {export.server} has signed and published no number; query any server, and audit again"
        findings.append(Finding("numbers", NOTHING, detail))
    return findings


def _campaign(keys: Path, evidence: Path, digest: str) -> Campaign:
    campaign = Campaign.from_json((evidence / "campaign.json").read_bytes())
    if to_base64url(campaign.digest) != digest:
        raise Nothing(f"the evidence is about another campaign than {digest}")
    if (keys / "campaign.json").read_bytes() != campaign.canonical:
        raise Nothing("the keys handed over are of another campaign")
    return campaign


def _uploads(export: Export, evidence: Path) -> int:
    """Whether the evidence is the other server's, and the uploads are those that the audited server itself names."""
    if read(About, (evidence / "about.json").read_bytes()).server == export.server:
        raise Nothing(f"keys and evidence are both of server {export.server}; the evidence must be the other server's")
    for number, made in export.sets.items():
        told = export.about[number]
        if (made.count, made.checksum) != (told.count, told.checksum):
            of = "" if export.campaign.waves is None else f" of wave {number}"
            detail = f"{made.count} uploads{of} are handed over; about.json names {told.count} or others"
            raise Wrong(export.server, detail)
    return 0
