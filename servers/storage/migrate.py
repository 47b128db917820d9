"""Bringing a database to this program's schema, with Alembic; a newer one is used if it says that it can be.

A schema is called by its number and the oldest number of a program that may use it: `0002_from_0001` only added to
`0001`, so that programs of both go on side by side; `0003_from_0002` took away what those of `0001` need. The name is
the one row of `alembic_version`, so it changes in the transaction that changes the tables, and programs that do not
have the migration can read it. docs/compatibility.md has the rules.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection, Engine

from servers.storage import dialects
from servers.storage.database import Damaged

SCRIPTS = Path(__file__).parent / "migrations"
_NAME = re.compile(r"(\d{4})(?:_from_(\d{4}))?")
SCHEMA = "SELECT version_num FROM alembic_version"  # that a database has


@dataclass(frozen=True)
class Schema:
    """The name of a schema, read."""

    number: int
    oldest: int  # program that may use it

    @staticmethod
    def parse(name: str) -> "Schema | None":
        """None where that is no name of ours."""
        found = _NAME.fullmatch(name)
        return None if found is None else Schema(int(found[1]), int(found[2] or found[1]))


@cache
def newest() -> str:
    """The schema of this program."""
    head = ScriptDirectory(str(SCRIPTS)).get_current_head()
    assert head is not None
    return head


def is_usable(found: str) -> bool:
    """May this program use a database of that schema as it is?"""
    return found == newest() or is_expanded(found)


def is_expanded(found: str) -> bool:
    """Is it the schema of a newer program, to which this program's parts were only added?"""
    schema, own = Schema.parse(found), Schema.parse(newest())
    return schema is not None and own is not None and schema.oldest <= own.number < schema.number


def is_outdated(found: str) -> bool:
    """Is it the schema of an older program, which the next start of this one changes?"""
    schema, own = Schema.parse(found), Schema.parse(newest())
    return schema is not None and own is not None and schema.number < own.number


def upgrade(engine: Engine) -> None:
    """Make the tables, or change what an older version made: all of it, or after a crash nothing."""
    with engine.connect() as db:
        dialects.of(engine).begin(db, None, shared=False)  # one process at a time; and all of it is one transaction
        heads = MigrationContext.configure(db).get_current_heads()
        if not (len(heads) == 1 and is_expanded(heads[0])):
            run(db, "head")
        db.commit()


def schema_of(engine: Engine) -> str | None:
    """The name of a database's schema; None of an empty database."""
    with engine.connect() as db:
        return MigrationContext.configure(db).get_current_revision()


def run(db: Connection, to: str) -> None:
    """Bring the tables to a schema, in the transaction that was begun."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    script = ScriptDirectory.from_config(config)
    known = {revision.revision for revision in script.walk_revisions()}
    wanted = set(MigrationContext.configure(db).get_current_heads()) | ({to} - {"head"})
    unknown = wanted - known
    if unknown:
        raise Damaged(
            f"the database has schema {', '.join(sorted(unknown))}, which this version does not know; "
            "run the version of the program that made it, or a newer one"
        )
    context = EnvironmentContext(config, script, fn=lambda revision, _: script._upgrade_revs(to, revision))
    with context:
        context.configure(connection=db)
        with context.begin_transaction():
            context.run_migrations()
