"""Bringing a database to this program's version of the schema, with Alembic; a newer one is refused."""

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
SCHEMA = "SELECT version_num FROM alembic_version"  # that a database has


@cache
def newest() -> str | None:
    """The schema of this program."""
    return ScriptDirectory(str(SCRIPTS)).get_current_head()


def upgrade(engine: Engine) -> None:
    """Make the tables, or change what an older version made: all of it, or after a crash nothing."""
    with engine.connect() as db:
        dialects.of(engine).begin(db, None, shared=False)  # one process at a time; and all of it is one transaction
        run(db, "head")
        db.commit()


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
