"""What this server keeps of the other one's words: its statement, and every signed answer. Lies are proven with it."""

import hashlib
from pathlib import Path

from campaign.errors import PeerMismatch, StorageFull
from campaign.files import write_durably
from campaign.spec import to_base64url

MOST_BYTES = 8 << 30  # about one set; then questions that would need more are refused


class Evidence:
    """About one sealed set."""

    def __init__(self, folder: Path, checksum: bytes) -> None:
        self.folder = folder / f"evidence-{to_base64url(checksum)}"

    def statement(self) -> bytes | None:
        path = self.folder / "statement"
        return path.read_bytes() if path.is_file() else None

    def keep_statement(self, data: bytes) -> None:
        self._make()
        write_durably(self.folder / "statement", data)

    def keep_answer(self, question: bytes, answer: bytes) -> None:
        """Durably, before anything is published from it. The same question never gets two answers."""
        name = hashlib.sha256(question).hexdigest()
        path = self.folder / f"{name}.answer"
        if path.is_file():
            if path.read_bytes() != answer:
                raise PeerMismatch("the other server answers a question otherwise than before")
            return
        self._make()
        size = sum(file.stat().st_size for file in self.folder.iterdir())
        if size + len(question) + len(answer) > MOST_BYTES:
            raise StorageFull("no more signed answers of the other server can be kept for this campaign")
        write_durably(self.folder / f"{name}.question", question)
        write_durably(path, answer)

    def answers(self) -> list[tuple[bytes, bytes]]:
        """All questions that were asked, and what was answered."""
        paths = sorted(self.folder.glob("*.answer"))
        return [(path.with_suffix(".question").read_bytes(), path.read_bytes()) for path in paths]

    def _make(self) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
