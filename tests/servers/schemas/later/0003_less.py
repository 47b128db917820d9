"""A schema that takes away what programs of 0001 write, when none of them is left."""

from alembic import op

revision = "0003_from_0002"
down_revision = "0002_from_0001"


def upgrade() -> None:
    op.drop_column("waves", "freeze_number")
