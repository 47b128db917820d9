"""The receipt of a party's upload to a campaign: what is on its way, what is stored, what is being withdrawn.

It holds a random salt, from which all ids follow, and together with the token all keys (`dealer/upload_secrets.py`), a
keyed hash of the positions, whether they go as keys or as tables, and for every batch a generation, a state, the wave
it is for and the signatures by which both servers confirmed that it is stored; no value, no key. Three rules make a
value count at most once, whatever a server answers:

1. A batch is noted as `sending` before it is sent, and sent again only as the same bytes under the same ids.
2. A withdrawal is noted before it is asked for; from then on these ids are never sent again.
3. New ids and keys (the next generation) are used when both servers have confirmed that the old ones do not count:
   they are withdrawn, or excluded from the set of their wave. The honest one of them has seen to it, so they cannot be
   in the set that both servers hold. A server that calls an upload late, or a token unknown, is not believed without
   that: if the token was wrong, the right one withdraws what may have arrived.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dealer.key_pairs import Rand
from dealer.upload_secrets import SALT_BYTES, UploadSecrets
from fss_ecdf.campaign.errors import InvalidValue, TryAgain
from fss_ecdf.campaign.files import write_durably

VERSION = 6
FOLDER_VARIABLE = "FSS_RECEIPTS"

# What is known of a batch: nothing of it is anywhere; perhaps; both have stored it; its party takes it back, or its
# wave closed before both had it: nobody knows until both confirm that it does not count.
NEW, SENDING, DONE, WITHDRAWING, PENDING = STATES = ("new", "sending", "done", "withdrawing", "pending")
FIELDS = {"version", "campaign", "salt", "token", "data", "values", "batch", "form", "parts"}
KEYS, TABLES = FORMS = ("keys", "tables")  # what a batch is sent as: a key of each value, or one table of all


def default_path(campaign: str, environment: Mapping[str, str]) -> Path:
    """Where a user's receipt for a campaign is kept, wherever the program is run from."""
    if named := environment.get(FOLDER_VARIABLE):
        folder = Path(named)
    elif data := environment.get("XDG_DATA_HOME"):
        folder = Path(data) / "fss-ecdf"
    elif home := environment.get("HOME"):
        folder = Path(home) / ".local" / "share" / "fss-ecdf"
    else:
        raise InvalidValue(f"there is no home folder to keep the receipt in: name a folder in {FOLDER_VARIABLE}")
    return folder / f"{campaign}.receipt.json"


@dataclass
class BatchState:
    """One batch of values: which of its ids are in use, and what is known of them."""

    attempt: int = 0
    state: str = NEW
    wave: int = 0  # that its keys are for, once they are made
    signatures: tuple[str, ...] = ()  # of both servers, that its uploads are stored

    def as_list(self) -> list[object]:
        """As it stands in the file."""
        return [self.attempt, self.state, self.wave, list(self.signatures)]


@dataclass
class Receipt:
    path: Path
    campaign: str
    salt: bytes = field(repr=False)
    source: UploadSecrets
    data: str = ""  # the tag of the positions
    count: int = 0
    batch: int = 1
    form: str = KEYS
    parts: dict[int, BatchState] = field(default_factory=dict)

    def save(self) -> None:
        """Durably, and complete or not at all."""
        body: dict[str, Any] = {"version": VERSION, "campaign": self.campaign, "salt": self.salt.hex()}
        body |= {"token": self.source.token_fingerprint(), "data": self.data, "values": self.count, "batch": self.batch}
        body["form"] = self.form
        body["parts"] = {str(n): part.as_list() for n, part in sorted(self.parts.items())}
        write_durably(self.path, json.dumps(body).encode())

    def numbers(self, *states: str) -> list[int]:
        return sorted(n for n, part in self.parts.items() if part.state in states)

    def take(self, data: str, count: int, batch: int, form: str = KEYS) -> None:
        """These values from now on, in batches of this form. Nothing of others may be anywhere."""
        if self.data != data or not self.numbers(SENDING, DONE):
            self.data, self.count, self.batch, self.form = data, count, batch, form
        for number in range(-(-self.count // self.batch)):
            self.parts.setdefault(number, BatchState())
        self.save()

    def within(self, number: int) -> slice:
        """Where a batch's values are."""
        return slice(number * self.batch, min(self.count, (number + 1) * self.batch))

    def size(self, numbers: Iterable[int]) -> int:
        """How many values these batches have."""
        return sum(part.stop - part.start for part in map(self.within, numbers))

    def ids(self, number: int) -> NDArray[np.uint8]:
        part = self.parts[number]
        if self.form == TABLES:
            return self.source.table_id(number, part.attempt, part.wave)
        return self.source.ids(number, part.attempt, self.size([number]))

    def note(self, numbers: Iterable[int], state: str) -> None:
        for number in numbers:
            self.parts[number].state = state
        self.save()

    def note_sending(self, number: int, wave: int) -> None:
        """Its keys are for this wave, and are sent again for no other."""
        self.parts[number].wave = wave
        self.note([number], SENDING)

    def note_stored(self, number: int, signatures: tuple[str, ...]) -> None:
        """Both servers have signed that they stored it."""
        self.parts[number].signatures = signatures
        self.note([number], DONE)

    def withdrawn(self, numbers: Iterable[int]) -> None:
        """Both servers have confirmed that it does not count: other ids may be used."""
        for number in numbers:
            self.parts[number] = BatchState(self.parts[number].attempt + 1)
        self.save()

    def forget_data(self) -> None:
        """Nothing of the values is anywhere, so nothing needs to tell them from others."""
        self.data, self.count, self.batch, self.form = "", 0, 1, KEYS
        self.save()


@contextmanager
def open_receipt(path: Path, campaign: str, token: str, rand: Rand) -> Iterator[Receipt]:
    """The receipt at this path, or a new one, for this process alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path.with_suffix(path.suffix + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TryAgain(f"another upload is at work with the receipt {path}; wait for its end") from None
        yield _load(path, campaign, token) if path.exists() else _new(path, campaign, token, rand)
    finally:
        os.close(lock)


def _new(path: Path, campaign: str, token: str, rand: Rand) -> Receipt:
    salt = rand(SALT_BYTES)
    return Receipt(path, campaign, salt, UploadSecrets.of(salt, token))


def _load(path: Path, campaign: str, token: str) -> Receipt:
    try:
        body = json.loads(path.read_bytes())
        receipt = _read(path, body, token)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise InvalidValue(
            f"{path} is not a receipt of this version; without it what was sent before cannot be withdrawn and "
            "counts beside what is sent now: move it away only if nothing was"
        ) from None
    if receipt.campaign != campaign:
        raise InvalidValue(f"{path} is the receipt of another campaign; name another with --receipt")
    if body["token"] != receipt.source.token_fingerprint() and receipt.numbers(SENDING, DONE):
        raise InvalidValue(
            f"the upload of the receipt {path} was made with another token: use that one to go on with it or to "
            "withdraw it (--previous-token-file, where you were given a new one); another party's values need another "
            "receipt (--receipt FILE)"
        )
    return receipt


def _read(path: Path, body: dict[str, Any], token: str) -> Receipt:
    """What `save` wrote, or a ValueError."""
    if set(body) != FIELDS or body["version"] != VERSION:
        raise ValueError("other fields")
    salt, count, batch = bytes.fromhex(body["salt"]), _number(body["values"]), _number(body["batch"])
    if body["form"] not in FORMS or len(salt) != SALT_BYTES or not batch or not isinstance(body["campaign"], str):
        raise ValueError("a form, a salt, a batch and a campaign are needed")
    tags = [bytes.fromhex(body[name]) for name in ("data", "token")]
    if len(tags[0]) not in (0, 32) or len(tags[1]) != 16:
        raise ValueError("a tag has another length")
    given = body["parts"].items()
    parts = {int(n): BatchState(_number(g), state, _number(wave), _signatures(s)) for n, (g, state, wave, s) in given}
    for number, part in parts.items():
        out = part.state != NEW
        if part.state not in STATES or number < 0 or (out and number * batch >= count):
            raise ValueError("batches do not fit the values")
        if part.state == DONE and not part.signatures:
            raise ValueError("what is stored is signed")
    of = tags[0].hex(), count, batch, body["form"]
    return Receipt(path, body["campaign"], salt, UploadSecrets.of(salt, token), *of, parts)


def _signatures(given: object) -> tuple[str, ...]:
    """None, or those of both servers."""
    if not isinstance(given, list) or len(given) not in (0, 2) or not all(isinstance(one, str) for one in given):
        raise ValueError("not signatures")
    return tuple(given)


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError("not a number")
    return value
