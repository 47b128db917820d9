"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "campaigns",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.LargeBinary(32), nullable=False, unique=True),
        sa.Column("spec", sa.LargeBinary, nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sa.Column("upload_token", sa.Text),
        sa.Column("noise_seed", sa.LargeBinary(32)),
        sa.Column("stored", sa.Integer, nullable=False),
        sa.Column("erased", sa.Integer, nullable=False),
    )
    op.create_table(
        "waves",
        sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("freeze_number", sa.Integer, nullable=False),
        sa.Column("operator_agreed", sa.Boolean, nullable=False),
        sa.Column("sealed_count", sa.Integer),
        sa.Column("sealed_set", sa.LargeBinary(32)),
        sa.Column("sealed_tables", sa.Integer),
        sa.Column("sealed_in_tables", sa.Integer),
        sa.Column("unmatched", sa.Integer),
        sa.Column("rejected", sa.Integer, nullable=False),
        sa.Column("checked_set", sa.LargeBinary(32)),
        sa.Column("key_file", sa.LargeBinary(32)),
        sa.Column("peer_seed", sa.LargeBinary(32)),
        sa.Column("erased", sa.Boolean, nullable=False),
        sa.Column("abandon_agreed", sa.Boolean, nullable=False),
        sa.Column("abandoned", sa.Boolean, nullable=False),
    )
    op.create_table(
        "commitments",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("campaign", sa.LargeBinary(32), nullable=False, unique=True),
        sa.Column("salt", sa.LargeBinary(32), nullable=False),
    )
    upload = (
        sa.Column("campaign", sa.Integer, nullable=False),
        sa.Column("id", sa.LargeBinary(16), nullable=False),
        sa.Column("leaf", sa.LargeBinary(32), nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("sender", sa.Text),
        sa.Column("wave", sa.Integer, nullable=False),
    )
    if op.get_bind().dialect.name == "postgresql":
        # A partition for each campaign, so that erasing it is dropping; keys are random and not worth compressing.
        by_id = sa.PrimaryKeyConstraint("campaign", "id")
        op.create_table("uploads", *upload, by_id, postgresql_partition_by="LIST (campaign)")
        op.execute("ALTER TABLE uploads ALTER key SET STORAGE EXTERNAL")
    else:
        op.create_table("uploads", sa.Column("number", sa.Integer, primary_key=True), *upload)
        op.create_index("uploads_by_id", "uploads", ["campaign", "id"], unique=True)
    several = sa.text("wave > 0")
    wave = ["campaign", "wave", "id"]
    op.create_index("uploads_by_wave", "uploads", wave, sqlite_where=several, postgresql_where=several)
    given = sa.text("sender IS NOT NULL")
    sender = ["campaign", "sender"]
    op.create_index("uploads_by_sender", "uploads", sender, sqlite_where=given, postgresql_where=given)
    op.create_table(
        "site_tables",
        sa.Column("campaign", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", sa.LargeBinary(16), primary_key=True),
        sa.Column("people", sa.Integer, nullable=False),
        sa.Column("sender", sa.Text),
        sa.Column("wave", sa.Integer, nullable=False),
        sa.Column("excluded", sa.Boolean, nullable=False),
    )
    op.create_table(
        "table_parts",
        sa.Column("campaign", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", sa.LargeBinary(16), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("share", sa.LargeBinary, nullable=False),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE table_parts ALTER share SET STORAGE EXTERNAL")
    op.create_table(
        "invitations",
        sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
        sa.Column("token", sa.Text, primary_key=True),
    )
    op.create_table(
        "sites",
        sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("quota", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_index("sites_by_token", "sites", ["campaign", "token"], unique=True)
    op.create_table(
        "withdrawn",
        sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
        sa.Column("sender", sa.Text, primary_key=True),
        sa.Column("id", sa.LargeBinary(16), primary_key=True),
        sa.Column("was_stored", sa.Boolean, nullable=False),
    )
    op.create_index("withdrawn_by_id", "withdrawn", ["campaign", "id"])
    op.create_table(
        "excluded",
        sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
        sa.Column("id", sa.LargeBinary(16), primary_key=True),
        sa.Column("leaf", sa.LargeBinary(32), nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("sender", sa.Text),
        sa.Column("wave", sa.Integer, nullable=False),
        sa.Column("rejected", sa.Boolean, nullable=False),
    )
    op.create_table(
        "proposed_exclusions",
        sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
        sa.Column("set", sa.LargeBinary(32), primary_key=True),
        sa.Column("id", sa.LargeBinary(16), primary_key=True),
    )
    op.create_table(
        "ledger",
        sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
        sa.Column("wave", sa.Integer, primary_key=True),
        sa.Column("purpose", sa.Text, primary_key=True),
        sa.Column("epsilon", sa.Float, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
    )
    op.create_table(
        "actions",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("campaign", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
        sa.Column("wave", sa.Integer, primary_key=True),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("progress", sa.Float, nullable=False),
        sa.Column("problem", sa.Text),
        sa.Column("owner", sa.Text),
        sa.Column("until", sa.Float, nullable=False),
    )
    op.create_table(
        "history",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("nonce", sa.LargeBinary(16), nullable=False),
    )
    op.create_table(
        "standing",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("mark", sa.LargeBinary(32), nullable=False),
        sa.Column("signing_key", sa.Text, nullable=False),
        sa.Column("problem", sa.Text),
        sa.Column("since", sa.Text),
    )
    op.create_table(
        "troubles",
        sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
        sa.Column("wave", sa.Integer, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
