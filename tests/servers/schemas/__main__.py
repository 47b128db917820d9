"""Makes the dumps, and notes the digest of the migration that leads to the schema."""

import hashlib
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from tempfile import TemporaryDirectory

from servers.storage.migrate import SCRIPTS, newest
from servers.storage.storage import Storage
from tests.harness.postgres import Postgres, programs
from tests.servers.schemas.rows import fill

HERE = Path(__file__).parent


def sqlite() -> str:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        with closing(Storage(f"sqlite:///{path}")) as storage:
            fill(storage)
        with closing(connect(path)) as db:
            return "\n".join(db.iterdump()) + "\n"


def postgresql() -> str:
    with Postgres() as server:
        url = server.database()
        with closing(Storage(url)) as storage:
            fill(storage)
        command = [str(programs() / "pg_dump"), "--inserts", "--no-owner", "--no-privileges", url]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Orders to psql, and comments that tell the version of pg_dump.
    return "".join(line + "\n" for line in text.splitlines() if line and not line.startswith(("--", "\\")))


def main() -> None:
    frozen = json.loads((HERE / "frozen.json").read_text()) if (HERE / "frozen.json").exists() else {}
    if not frozen.items() <= digests().items():
        sys.exit("a migration that was released has changed")
    for name, made in (("sqlite", sqlite), ("postgresql", postgresql)):
        path = HERE / f"{newest()}.{name}.sql"
        if path.exists():
            sys.exit(f"{path.name} is there already, and what was released stays as it was")
        path.write_text(made())
    (HERE / "frozen.json").write_text(json.dumps(digests(), indent=4) + "\n")


def digests() -> dict[str, str]:
    """Of every migration, by the name of its file."""
    files = sorted((SCRIPTS / "versions").glob("[0-9]*.py"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


if __name__ == "__main__":
    main()
