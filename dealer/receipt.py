"""The receipt of an upload: which random ids were sent, and which are done. No value and no key is in it.

With it an interrupted upload goes on: what is done stays, what is not known to be done is withdrawn at both servers
(whatever they have of it) and sent again under new ids. So every value counts exactly once.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from campaign.errors import InvalidValue
from campaign.files import write_durably
from campaign.wire import UPLOAD_ID_BYTES

VERSION = 1


@dataclass
class Receipt:
    path: Path
    digest: str
    count: int
    batch: int
    done: dict[int, str] = field(default_factory=dict)  # batch number -> ids, hexadecimal
    sending: dict[int, str] = field(default_factory=dict)

    def save(self) -> None:
        """Durably, and complete or not at all."""
        body = {"version": VERSION, "campaign": self.digest, "values": self.count, "batch": self.batch}
        body |= {"done": self.done, "sending": self.sending}
        write_durably(self.path, json.dumps(body).encode())

    def begin(self, number: int, ids: bytes) -> None:
        self.sending[number] = ids.hex()
        self.save()

    def finish(self, number: int) -> None:
        self.done[number] = self.sending.pop(number)
        self.save()


def open_receipt(path: Path, digest: str, count: int, batch: int) -> Receipt:
    """A new receipt, or the one of the interrupted upload of the same values."""
    if not path.exists():
        return Receipt(path, digest, count, batch)
    try:
        body = json.loads(path.read_text())
        same = body["version"] == VERSION and body["campaign"] == digest and body["values"] == count
        size, values = int(body["batch"]), int(body["values"])
        done, sending = (_batches(body[name], size, values) for name in ("done", "sending"))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise InvalidValue(f"{path} is not a receipt; move it away") from None
    if not same:
        raise InvalidValue(f"{path} is the receipt of another upload; name another with --receipt")
    return Receipt(path, digest, count, size, done, sending)


def _batches(found: dict[str, str], size: int, count: int) -> dict[int, str]:
    """Ids by the number of their batch: of every value of the batch one, or a ValueError."""
    if size < 1:
        raise ValueError("a batch has at least one value")
    batches = {int(number): ids for number, ids in found.items()}
    for number, ids in batches.items():
        here = min(size, count - number * size)
        if number < 0 or here < 1 or len(bytes.fromhex(ids)) != UPLOAD_ID_BYTES * here:
            raise ValueError("ids do not fit their batch")
    return batches
