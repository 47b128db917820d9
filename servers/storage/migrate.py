"""Bringing a database to this program's version of the schema, with Alembic; a newer one is refused."""

from pathlib import Path

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Engine

from servers.storage import dialects
from servers.storage.database import Damaged

SCRIPTS = Path(__file__).parent / "migrations"


VERSION = sa.text("SELECT version_num FROM alembic_version")


def upgrade(engine: Engine) -> str:
    """Make the tables, or change what an older version made, all or nothing, also after a crash. Returns the schema."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    script = ScriptDirectory.from_config(config)
    known = {revision.revision for revision in script.walk_revisions()}
    with engine.connect() as db:
        dialects.of(engine).begin(db, None, shared=False)  # one process at a time; and all of it is one transaction
        unknown = set(MigrationContext.configure(db).get_current_heads()) - known
        if unknown:
            raise Damaged(
                f"the database has schema {', '.join(sorted(unknown))}, which this version does not know; "
                "run the version of the program that made it, or a newer one"
            )
        context = EnvironmentContext(config, script, fn=lambda revision, _: script._upgrade_revs("head", revision))
        with context:
            context.configure(connection=db)
            with context.begin_transaction():
                context.run_migrations()
        db.commit()
        return str(db.execute(VERSION).scalar_one())
