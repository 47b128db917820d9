"""What an operator does to campaigns, at both servers: the work behind `fss-server campaign`."""

import shlex
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from fss_ecdf.campaign.campaign import Campaign, check_digest, to_base64url
from fss_ecdf.campaign.error_text import short
from fss_ecdf.campaign.errors import (
    AgreementPending,
    InvalidCampaign,
    InvalidPeerResponse,
    InvalidQuery,
    Problem,
    TooFewUploads,
    TryAgain,
    from_document,
)
from fss_ecdf.campaign.json_messages import read
from fss_ecdf.campaign.parsing import parse_json
from fss_ecdf.campaign.status import Status, StatusProblem, WaveStatus
from fss_ecdf.campaign.text import all_shown, check_address
from fss_ecdf.cli.common import UsageError
from fss_ecdf.net import https
from fss_ecdf.net.tokens import hash_token, new_token
from fss_ecdf.operators import next_steps

TIMEOUT_S = 600  # sealing may take minutes
MOST_BYTES = 64 << 20  # of an answer; the status of a campaign with very many sites is the longest
PATIENCE_S = 60.0  # with a server that is away, or has failed and tries again, while one waits for the curve


@dataclass(frozen=True)
class CampaignWithTokens:
    """A campaign with the tokens that admit parties to it."""

    campaign: Campaign
    upload_token: str | None
    invitations: list[str]

    @staticmethod
    def new(campaign: Campaign, invitations: int) -> "CampaignWithTokens":
        if campaign.admission == "open":
            if invitations:
                raise UsageError(
                    '--invitations is for campaigns with admission = "invited"; this one is open to whoever has its '
                    "upload token"
                )
            return CampaignWithTokens(campaign, new_token("upload"), [])
        if campaign.admission == "sites":
            if invitations:
                raise UsageError(
                    '--invitations is for campaigns with admission = "invited"; sites are invited with '
                    "fss-server campaign sites add"
                )
            return CampaignWithTokens(campaign, None, [])
        if invitations < 1:
            raise UsageError("an invited campaign needs --invitations N")
        return CampaignWithTokens(campaign, None, [new_token("invite") for _ in range(invitations)])


@dataclass(frozen=True)
class ServerAddress:
    """Where one server is, and whose certificates it shows: what everybody may know."""

    server: int
    url: str
    ca: Path | None  # None: certificates that the system trusts


class ServerClient:
    """One server, reached with its operator's token; without one, as everybody reaches it."""

    def __init__(self, number: int, url: str, ca: Path | None, token: str | None, timeout_s: float = TIMEOUT_S) -> None:
        self.number, self.url, self.ca = number, url, ca
        self._server = https.ServerEndpoint(f"server {number} at {url}", https.ONCE, f"server {number}: ")
        self._http = httpx.Client(base_url=url, **https.options(token, ca, timeout_s))

    def close(self) -> None:
        self._http.close()

    def call(self, method: str, path: str, *, most: int = MOST_BYTES, **more: Any) -> httpx.Response:
        return self._server.ask(self._http, method, path, most=most, **more)

    def json(self, method: str, path: str, **more: Any) -> Any:
        """An answer in JSON; every text in it is on one line and shows what it has in it."""
        try:
            return all_shown(parse_json(self.call(method, path, **more).content))
        except (ValueError, RecursionError):
            raise InvalidPeerResponse(f"server {self.number} did not answer in JSON") from None

    def campaign(self, campaign_id: str) -> Campaign:
        """The campaign that this server describes, checked."""
        found = self.call("GET", f"/v1/campaigns/{campaign_id}").content
        try:
            return Campaign.from_dict(parse_json(found)["campaign"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = f": {error}" if isinstance(error, InvalidCampaign) else ""
            raise InvalidPeerResponse(f"server {self.number} did not send a campaign{why}") from None

    def status(self, campaign_id: str) -> Status:
        """Where a campaign stands on this server."""
        try:
            return read(Status, self.json("GET", f"/v1/campaigns/{campaign_id}/status"))
        except InvalidQuery as problem:
            raise InvalidPeerResponse(f"server {self.number} did not send a status: {problem.detail}") from None


@contextmanager
def clients_of(path: Path, timeout_s: float = TIMEOUT_S) -> Iterator[list[ServerClient]]:
    """The servers that an operator file names, for as long as they are needed; paths in it are relative to it."""
    with ExitStack() as opened:
        yield [opened.enter_context(closing(ServerClient(*about, timeout_s))) for about in _servers(path)]


def addresses_of(path: Path) -> list[ServerAddress]:
    """Both servers, in the order of their roles: those an operator has the token of, and [peer] of the file."""
    own = [ServerAddress(role, url, ca) for role, url, ca, _ in _servers(path)]
    other = tomllib.loads(path.read_text()).get("peer")
    if len(own) == 1 and isinstance(other, dict):
        if "url" not in other:
            raise UsageError(f"{path}: [peer] needs the url of the other organisation's server")
        own.append(ServerAddress(1 - own[0].server, _address(path, other["url"]), _authority(path, other)))
    return sorted(own, key=lambda place: place.server)


def _authority(path: Path, server: dict[str, Any]) -> Path | None:
    """Each server has its own, so that nobody who may sign certificates for one speaks for the other."""
    return path.parent / str(server["ca"]) if "ca" in server else None


def _servers(path: Path) -> list[tuple[int, str, Path | None, str]]:
    """Role, URL, certificate authority and token of each server."""
    try:
        return [
            (
                s.get("server", i),
                _address(path, s["url"]),
                _authority(path, s),
                (path.parent / s["token_file"]).read_text().strip(),
            )
            for i, s in enumerate(tomllib.loads(path.read_text())["server"])
        ]
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: every [[server]] needs url and token_file ({error})") from None


def _address(path: Path, url: object) -> str:
    try:
        return check_address(str(url)).rstrip("/")
    except ValueError as error:
        raise UsageError(f"{path}: {short(repr(url))}: {error}") from None


def with_commitments(
    remotes: list[ServerClient], new: CampaignWithTokens, known: list[dict[str, str]] | None = None
) -> CampaignWithTokens:
    """The campaign with the commitments of both servers, asked of one of them, unless that is known already."""
    if new.campaign.server_commitments is not None:
        return new
    path = f"/v1/commitments/{to_base64url(new.campaign.id)}?kem={new.campaign.kem}"
    both = known or remotes[0].json("GET", path)["server_commitments"]
    fields = {**new.campaign.model_dump(mode="json", by_alias=True), "server_commitments": both}
    return replace(new, campaign=Campaign.from_dict(fields))


def commitments_of(created: CampaignWithTokens) -> list[dict[str, str]]:
    """As they are written."""
    return [commitment.model_dump(mode="json") for commitment in created.campaign.server_commitments or ()]


def create(remotes: list[ServerClient], new: CampaignWithTokens) -> None:
    """Create the campaign at every server. If one fails, the others keep it, and repeating completes it."""
    body = {
        "campaign": new.campaign.model_dump(mode="json", by_alias=True),
        "upload_token": new.upload_token and hash_token(new.upload_token),
        "invitations": [hash_token(token) for token in new.invitations],
    }
    done: list[int] = []
    for remote in remotes:
        try:
            remote.call("POST", "/v1/campaigns", json=body)
        except Problem as problem:
            where = f"; it exists at server {', '.join(map(str, done))} only" if done else ""
            raise type(problem)(f"{problem.detail}{where}") from None
        done.append(remote.number)


def agreed(remotes: list[ServerClient], campaign_id: str) -> Campaign:
    """The campaign that both servers describe alike."""
    if len(remotes) != 2:
        raise UsageError("this needs both servers: the operator file names one only")
    found = [remote.campaign(campaign_id) for remote in remotes]
    check_digest(found[0].digest, found[1].digest)
    return found[0]


def open_wave(remotes: list[ServerClient], campaign_id: str) -> int | None:
    """The first wave that is not sealed at every server, of a campaign that has waves."""
    answers = [remote.status(campaign_id) for remote in remotes]
    closed = ("checking", "sealed")
    waiting = [wave.number for status in answers for wave in status.waves if wave.state not in closed]
    newest = [status.wave for status in answers]
    return min([*waiting, *newest]) if answers[0].planned_waves is not None else None


def seal(remotes: list[ServerClient], campaign_id: str, wave: int | None = None) -> tuple[dict[str, Any], int]:
    """Each server gets its operator's word, and the last one to get it seals. Returns its answer and its number."""
    of = "" if wave is None else f"?wave={wave}"
    for remote in remotes:
        try:
            return remote.json("POST", f"/v1/campaigns/{campaign_id}/seal{of}"), remote.number
        except AgreementPending:
            continue
    raise AgreementPending(
        f"server {remotes[0].number} has your word now; the operator of the other one must type the same command, "
        "and until then uploads go on"
    )


def abandon_wave(remotes: list[ServerClient], campaign_id: str, wave: int) -> tuple[int, int]:
    """Each server gets its operator's agreement to abandon a wave; the last server to get it has both servers do so.

    Returns how many uploads were excluded there, and the number of that server.
    """
    for remote in remotes:
        try:
            answer = remote.json("POST", f"/v1/campaigns/{campaign_id}/abandon?wave={wave}")
            return int(answer["excluded"]), remote.number
        except AgreementPending:
            continue
    raise AgreementPending(
        f"server {remotes[0].number} has your agreement now; the operator of the other server must run the same "
        "command, and until then nothing is changed"
    )


def environment(campaign: Campaign, places: list[ServerAddress], token: str | None) -> str:
    """Shell variables that tell parties' and analysts' programs where a campaign lives; parties get its token, too."""
    name = to_base64url(campaign.id)
    variables = {"FSS_CAMPAIGN_ID": name, "FSS_CAMPAIGN_DIGEST": to_base64url(campaign.digest)}
    variables |= {"FSS_CAMPAIGN_URLS": " ".join(f"{place.url}/v1/campaigns/{name}" for place in places)}
    variables |= {f"FSS_CA{place.server}": str(place.ca.resolve()) for place in places if place.ca}
    if token:
        variables["FSS_UPLOAD_TOKEN"] = token
    return "".join(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items())


def statuses(remotes: list[ServerClient], campaign_id: str) -> list[Status | StatusProblem]:
    """Each server's status, or the problem it has with the campaign."""
    answers: list[Status | StatusProblem] = []
    for remote in remotes:
        try:
            answers.append(remote.status(campaign_id))
        except Problem as problem:
            answers.append(
                StatusProblem.model_validate(
                    {"server": remote.number, "problem": problem.code, "detail": problem.detail}
                )
            )
    return answers


def wait_until_ready(
    remotes: list[ServerClient], campaign_id: str, show: Callable[[str], None], wave: int | None = None
) -> WaveStatus:
    """Until both servers have checked the keys and evaluated the curve, with progress. Returns one's last word."""
    well = time.monotonic()
    while True:
        both = statuses(remotes, campaign_id)
        waves = [_of_wave(status, wave) for status in both]
        show("  ".join(f"server {s.server}: {_progress(s, w)}" for s, w in zip(both, waves, strict=True)))
        if any(isinstance(status, Status) and status.too_few for status in both):
            raise TooFewUploads(next_steps.TOO_FEW)
        ready = [w for w in waves if w is not None and w.phase == "ready" and w.state == "sealed"]
        if len(ready) == len(both):
            return ready[0]
        each = [_trouble(s, w) for s, w in zip(both, waves, strict=True)]
        troubles = [trouble for trouble in each if trouble is not None]
        well = well if troubles else time.monotonic()
        for trouble in troubles:
            if not isinstance(trouble, TryAgain) or time.monotonic() - well > PATIENCE_S:
                raise trouble
        time.sleep(0.5)


def _trouble(status: Status | StatusProblem, wave: WaveStatus | None) -> Problem | None:
    """What is wrong at a server; most of it passes."""
    if isinstance(status, StatusProblem):
        return from_document({"type": status.problem, "detail": status.detail})
    if wave is not None and wave.phase == "failed":
        who, why = status.server, wave.problem or "unknown"
        return TryAgain(f"server {who} could not evaluate the curve ({why}); it tries again by itself, see its log")
    return None


def _of_wave(status: Status | StatusProblem, wave: int | None) -> WaveStatus | None:
    """What a status says of one wave; of the newest, if none is named."""
    if isinstance(status, StatusProblem):
        return None
    return status.waves[-1] if wave is None else status.of_wave(wave)


def _progress(status: Status | StatusProblem, wave: WaveStatus | None) -> str:
    if isinstance(status, StatusProblem):
        return status.problem
    if wave is None:
        return status.state
    return wave.state if wave.phase is None else f"{wave.phase} {100 * (wave.progress or 0):.0f} %"
