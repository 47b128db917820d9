"""A schema that only adds, as the next version might have it: programs of 0001 go on with it."""

import sqlalchemy as sa
from alembic import op

revision = "0002_from_0001"
down_revision = "0001"


def upgrade() -> None:
    op.create_table("notes", sa.Column("number", sa.Integer, primary_key=True), sa.Column("text", sa.Text))
    op.add_column("campaigns", sa.Column("contact", sa.Text))
    op.add_column("uploads", sa.Column("weight", sa.Integer, nullable=False, server_default="1"))
    op.add_column("waves", sa.Column("reason", sa.Text, nullable=False, server_default=""))
    op.execute("UPDATE campaigns SET contact = 'unknown' WHERE deleted = false")
