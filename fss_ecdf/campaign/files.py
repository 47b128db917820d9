"""Files that are there completely or not at all, and that only their owner can read."""

import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path


def write_durably(path: Path, data: bytes) -> None:
    """Replace a small file; the new one is on disk before it takes the name."""
    write_parts_durably(path, (data,))


def write_parts_durably(path: Path, parts: Iterable[bytes]) -> None:
    """The same with a file of any size, part by part."""
    partial = _written(path, parts)
    partial.replace(path)
    sync_directory(path.parent)


def write_once(path: Path, data: bytes) -> bool:
    """The same where there is no such file yet, whoever else tries at this moment; False if there is one."""
    partial = _written(path, (data,))
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        return False
    finally:
        partial.unlink()
    sync_directory(path.parent)
    return True


def copy_privately(source: Path, target: Path) -> None:
    """A copy for its owner only, of a file of any size, in folders for their owner only."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with source.open("rb") as old:
        target.touch(mode=0o600)
        with target.open("wb") as new:
            shutil.copyfileobj(old, new, 1 << 20)
            new.flush()
            os.fsync(new.fileno())


def partial_name(path: Path) -> Path:
    """Where a file is written before it takes its name; two who write the same one do not meet there."""
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")


def _written(path: Path, parts: Iterable[bytes]) -> Path:
    partial = partial_name(path)
    partial.touch(mode=0o600)
    try:
        with partial.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial


def sync_directory(path: Path) -> None:
    """Make a new name in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
