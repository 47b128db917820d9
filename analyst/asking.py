"""What both clients share: where to ask, what was learned, how answers are read, and how long to wait for them."""

import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np

from analyst import calibration
from analyst.by_points import Answered
from analyst.calibration import Calibration
from analyst.points import Index
from analyst.release import Floats, Release
from campaign.errors import InvalidInput, InvalidQuery, PeerMismatch
from campaign.inputs import Values, many
from campaign.spec import Campaign, check_digest
from campaign.wire import EcdfAnswer, GroupsAnswer, GroupsQuery, read
from client import https

ATTEMPTS = 5
# Points in one question that servers answer from the keys: at first, and however many keys there are.
POINTS, FEWEST_POINTS = 64, 14
NUMPY = {"Accept": "application/x-npy"}
JSON = {"Content-Type": "application/json"}


class Patience(TypedDict, total=False):
    """What `Asking` takes besides an address and a token."""

    timeout_s: float
    patience_s: float
    on_grid: bool
    wave: int | None
    until: int | None
    pooled: int | None


class Asking:
    """What both clients share: where to ask, what was learned, and how answers are read."""

    def __init__(
        self,
        url: str,
        token: str,
        ca: str | Path | None = None,
        *,
        timeout_s: float = 60.0,
        patience_s: float = 300.0,
        on_grid: bool = False,
        wave: int | None = None,
        until: int | None = None,
        pooled: int | None = None,
    ) -> None:
        """`patience_s`: how long to wait for a server that is still preparing the curve, or is busy.

        `on_grid`: values were measured in steps of the grid; otherwise a cell of the grid stands for its middle.
        `wave`, `until`, `pooled`: of a campaign of waves, one wave, all up to one, or what was pooled after one; all
        that there is unless one of them is said.
        """
        said = {"wave": wave, "until": until, "pooled": pooled}
        self._which = {name: str(number) for name, number in said.items() if number is not None}
        if len(self._which) > 1:
            raise InvalidInput("say one of wave, until and pooled")
        if not https.is_address(url):
            raise InvalidInput(https.NOT_AN_ADDRESS.format(url))
        self.url, self._on_grid = url.rstrip("/"), on_grid
        self._options = https.options(token, ca, timeout_s)
        self._server = https.Server(self.url, https.Patience(ATTEMPTS, patience_s))
        self._campaign: Campaign | None = None
        self._release: Release | None = None
        self._by_points = False  # learned when the server refuses a whole curve
        self._points = POINTS

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    def _read_campaign(self, data: bytes) -> Campaign:
        try:
            self._campaign = Campaign.from_dict(json.loads(data)["campaign"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise PeerMismatch(f"{self.url} did not send a campaign ({type(error).__name__})") from None
        return self._campaign

    def _seen(self, campaign: Campaign, answer: EcdfAnswer) -> Campaign:
        """The campaign as the releases that an answer is made of know it, with their noise."""
        if campaign.waves is None or not answer.made_of:
            return campaign
        pools = campaign.waves.milestones
        named = [name.split() for name in answer.made_of]
        try:
            each = [campaign.epsilon if kind == "wave" else pools[int(at)] for kind, at in named]
        except (KeyError, ValueError):
            raise PeerMismatch(f"{self.url} answers with releases that the campaign does not have") from None
        return campaign.released(tuple(Counter(each).items()))

    def _read_counts(self, data: bytes, last: EcdfAnswer, campaign: Campaign) -> Floats:
        """A curve in numpy's format, to the end of its padding; the count asked for by itself must be in it."""
        check_digest(campaign.digest, last.digest)
        try:
            counts = np.load(io.BytesIO(data), allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise PeerMismatch(f"{self.url} did not send a curve ({type(error).__name__})") from None
        padded = 1 << campaign.grid.bits
        if not isinstance(counts, np.ndarray) or counts.dtype.kind != "i" or counts.shape != (padded,):
            raise PeerMismatch(f"{self.url} sent something else than a curve of {padded} counts")
        if last.counts != [int(counts[campaign.grid.size - 1])]:
            raise PeerMismatch(f"{self.url} sent a curve that does not fit its own last count")
        return counts.astype(np.float64)

    def _read_answered(self, data: bytes, campaign: Campaign, index: Index) -> Answered:
        """Published counts at grid indices."""
        answer = read(EcdfAnswer, data)
        check_digest(campaign.digest, answer.digest)
        if len(answer.counts) != index.size:
            raise PeerMismatch(f"{self.url} answered {len(answer.counts)} of {index.size} questions")
        return answer.n, dict(zip(index.tolist(), answer.counts, strict=True))

    def _fewer_points(self, problem: InvalidQuery) -> None:
        """A server with many uploads takes few points in one question; how few it says only when asked."""
        if self._points <= FEWEST_POINTS:
            raise problem
        self._points = max(FEWEST_POINTS, self._points // 2)

    def _read_groups(self, data: bytes, campaign: Campaign, fitted: bool) -> Calibration:
        answer = read(GroupsAnswer, data)
        check_digest(campaign.digest, answer.digest)
        return calibration.hosmer_lemeshow(calibration.from_answer(answer), fitted=fitted)


def texts(at: Sequence[object]) -> list[str]:
    """Thresholds as the server reads them; a float's repr is the shortest text that is the same number."""
    return [x if isinstance(x, str) else str(x) for x in (v.item() if isinstance(v, np.generic) else v for v in at)]


def last_threshold(campaign: Campaign) -> str:
    return str(campaign.grid.labels(np.array([campaign.grid.size - 1]))[0])


def at_indices(campaign: Campaign, index: Index, stratum: str) -> dict[str, str]:
    """What to ask for published counts at grid indices."""
    return {"at": ",".join(texts(campaign.grid.labels(index))), "stratum": stratum}


def batches(index: Index, most: int) -> list[Index]:
    return [index[i : i + most] for i in range(0, index.size, most)]


def groups_query(upper_ends: Values, epsilon: float) -> bytes:
    """Checked before it is sent: an answer that is of no use would be paid all the same."""
    upper_ends = many(upper_ends)
    if len(upper_ends) < 3:
        raise InvalidQuery(f"calibration needs at least 3 groups, got {len(upper_ends)}")
    fields = {"upper_ends": [float(x) for x in upper_ends], "epsilon": float(epsilon)}
    return read(GroupsQuery, fields).to_json().encode()
