"""Files that are there completely or not at all, and that only their owner can read."""

import os
from pathlib import Path


def write_durably(path: Path, data: bytes) -> None:
    """Replace a small file; the new one is on disk before it takes the name."""
    partial = path.with_suffix(path.suffix + ".partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make a new name in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
