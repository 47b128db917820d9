"""What this server keeps of what the other one signed: its check messages, its statements, and every share it sent."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import InvalidPeerResponse, StorageFull
from fss_ecdf.campaign.files import write_durably, write_once, write_parts_durably
from servers import log

MOST_BYTES = 8 << 30  # about one set; then questions that would need more are refused


CHECK = "evidence-check"  # the folders of what was said in the check of a set; they are erased with its keys


class Evidence:
    """About one set: a sealed one or, with the prefix `CHECK`, one that was checked."""

    def __init__(self, folder: Path, checksum: bytes, prefix: str = "evidence") -> None:
        self.folder = folder / f"{prefix}-{to_base64url(checksum)}"
        self._bytes: int | None = None

    def keep_entries(self, parts: Iterable[bytes]) -> None:
        """Which uploads were checked, in their order: an auditor can tell from it which message is about which."""
        self._make()
        write_parts_durably(self.folder / "entries", parts)

    def keep_tables(self, listed: bytes) -> None:
        """Which of those uploads are tables, and of how many people each is."""
        self._make()
        write_durably(self.folder / "tables", listed)

    def statement(self) -> bytes | None:
        path = self.folder / "statement"
        return path.read_bytes() if path.is_file() else None

    def keep_statement(self, data: bytes, *, replace: bool = False) -> bytes:
        """The first one that any process of this server was given counts; returns that. A damaged one is replaced."""
        self._make()
        path = self.folder / "statement"
        if replace:
            write_durably(path, data)
        elif not write_once(path, data):
            return path.read_bytes()
        return data

    def keep_answer(self, question: bytes, answer: bytes, require: Callable[[bytes], None]) -> None:
        """Durably, before anything is published from it. The same question never gets two answers that are signed.

        `require` raises PeerMismatch unless the other server signed what it is given: what is kept and was damaged
        since is replaced.
        """
        name = hashlib.sha256(question).hexdigest()
        path = self.folder / f"{name}.answer"
        if path.is_file() and self._is_kept(path, answer, require):
            return
        damaged = path.is_file()
        self._make()
        self._bytes = self._size() + len(question) + len(answer)
        if self._bytes > MOST_BYTES:
            raise StorageFull("no more signed answers of the other server can be kept for this campaign")
        write_durably(self.folder / f"{name}.question", question)
        if damaged:
            log.event("evidence-damaged", level="warning", answer=name)
            write_durably(path, answer)
        elif not write_once(path, answer):  # another process of this server asked the same
            self._is_kept(path, answer, require)

    @staticmethod
    def _is_kept(path: Path, answer: bytes, require: Callable[[bytes], None]) -> bool:
        kept = path.read_bytes()
        if kept == answer:
            return True
        try:
            require(kept)
        except InvalidPeerResponse:
            return False
        raise InvalidPeerResponse("the other server answers a question otherwise than before")

    def _size(self) -> int:
        """Looked up once; then counted, by each process for itself."""
        if self._bytes is None:
            self._bytes = sum(file.stat().st_size for file in self.folder.iterdir())
        return self._bytes

    def _make(self) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
