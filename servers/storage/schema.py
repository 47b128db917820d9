"""The tables of one server's database.

A campaign is what everybody agreed on, with its tokens; a wave is one set of its uploads that is frozen and sealed
together: a plain campaign has one, number 0, others have 1, 2 and so on, the newest of which is open; a job is
background work on a wave. `migrations/` makes these tables and changes them; a test compares both.
"""

import sqlalchemy as sa

META = sa.MetaData()

CAMPAIGNS = sa.Table(
    "campaigns",
    META,
    sa.Column("number", sa.Integer, primary_key=True),  # what its uploads know it by: 32 bytes less in row and index
    sa.Column("id", sa.LargeBinary(32), nullable=False, unique=True),
    sa.Column("spec", sa.LargeBinary, nullable=False),
    sa.Column("deleted", sa.Boolean, nullable=False),
    sa.Column("upload_token", sa.Text),
    sa.Column("noise_seed", sa.LargeBinary(32)),
    sa.Column("stored", sa.Integer, nullable=False),  # people whose values are stored: uploads, tables by their counts
    sa.Column("erased", sa.Integer, nullable=False),  # uploads that were stored and withdrawn
)
WAVES = sa.Table(
    "waves",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("freeze_number", sa.Integer, nullable=False),
    sa.Column("operator_agreed", sa.Boolean, nullable=False),  # this server's operator has agreed to seal it
    sa.Column("sealed_count", sa.Integer),
    sa.Column("sealed_set", sa.LargeBinary(32)),
    sa.Column("sealed_tables", sa.Integer),  # how many of the set are tables of sites
    sa.Column("sealed_in_tables", sa.Integer),  # and how many people those are of
    sa.Column("unmatched", sa.Integer),
    sa.Column("rejected", sa.Integer, nullable=False),  # by checks so far
    sa.Column("checked_set", sa.LargeBinary(32)),  # the checksum of the ids that were checked
    sa.Column("key_file", sa.LargeBinary(32)),  # its digest, once it is written
    sa.Column("peer_seed", sa.LargeBinary(32)),  # the other server's part of the challenge, once told
    sa.Column("erased", sa.Boolean, nullable=False),  # its keys, after the last release that they are in
    sa.Column("abandon_agreed", sa.Boolean, nullable=False),  # this server's operator has agreed to abandon it
    sa.Column("abandoned", sa.Boolean, nullable=False),  # both have: its set is empty, and its parties upload again
)
# The salts of this server's HPKE keys, from the first commitment for a campaign of an id until the campaign is deleted.
COMMITMENTS = sa.Table(
    "commitments",
    META,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("campaign", sa.LargeBinary(32), nullable=False, unique=True),
    sa.Column("salt", sa.LargeBinary(32), nullable=False),
)
UPLOADS = sa.Table(
    "uploads",
    META,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("campaign", sa.Integer, nullable=False),  # its number
    sa.Column("id", sa.LargeBinary(16), nullable=False),
    sa.Column("leaf", sa.LargeBinary(32), nullable=False),  # what stands for it in its wave's set
    sa.Column("key", sa.LargeBinary, nullable=False),  # of a table: the other share's hash; empty once it is erased
    sa.Column("sender", sa.Text),  # the invitation's hash or the site's id; none in an open campaign
    sa.Column("wave", sa.Integer, nullable=False),  # that its party chose, for good
    sa.Index("uploads_by_id", "campaign", "id", unique=True),
    sa.Index("uploads_by_wave", "campaign", "wave", "id", sqlite_where=sa.text("wave > 0")),
    sa.Index("uploads_by_sender", "campaign", "sender", sqlite_where=sa.text("sender IS NOT NULL")),
)
# Of uploads that are tables of a site: how many people each is of; its row among the uploads counts as one.
SITE_TABLES = sa.Table(
    "site_tables",
    META,
    sa.Column("campaign", sa.Integer, primary_key=True, autoincrement=False),  # its number
    sa.Column("id", sa.LargeBinary(16), primary_key=True),
    sa.Column("people", sa.Integer, nullable=False),
    sa.Column("sender", sa.Text),
    sa.Column("wave", sa.Integer, nullable=False),
    sa.Column("excluded", sa.Boolean, nullable=False),  # its row is among those that were left out
)
# The share of a table, in parts that are read one at a time.
TABLE_PARTS = sa.Table(
    "table_parts",
    META,
    sa.Column("campaign", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("id", sa.LargeBinary(16), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("share", sa.LargeBinary, nullable=False),
)
INVITATIONS = sa.Table(
    "invitations",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("token", sa.Text, primary_key=True),
)
# Hospitals, say, that send values of many parties. Uploads remember a site by its id: its token may be exchanged.
SITES = sa.Table(
    "sites",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("quota", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Index("sites_by_token", "campaign", "token", unique=True),
)
# While a campaign is open: a copy of an upload that is still on its way must not undo its withdrawal, with whatever
# token it comes. The sender who withdrew it (empty for an open campaign) has a bounded number of them.
WITHDRAWN = sa.Table(
    "withdrawn",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("sender", sa.Text, primary_key=True),
    sa.Column("id", sa.LargeBinary(16), primary_key=True),
    sa.Column("was_stored", sa.Boolean, nullable=False),
    sa.Index("withdrawn_by_id", "campaign", "id"),
)
# Unmatched and rejected uploads, kept until this server's operator discards them.
EXCLUDED = sa.Table(
    "excluded",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("id", sa.LargeBinary(16), primary_key=True),
    sa.Column("leaf", sa.LargeBinary(32), nullable=False),
    sa.Column("key", sa.LargeBinary, nullable=False),
    sa.Column("sender", sa.Text),
    sa.Column("wave", sa.Integer, nullable=False),
    sa.Column("rejected", sa.Boolean, nullable=False),
)
# Ids that the other server does not have, told before both agree on the set without them; until then nothing moves.
PROPOSED = sa.Table(
    "proposed_exclusions",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("set", sa.LargeBinary(32), primary_key=True),
    sa.Column("id", sa.LargeBinary(16), primary_key=True),
)
LEDGER = sa.Table(
    "ledger",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("wave", sa.Integer, primary_key=True),  # whose parties pay
    sa.Column("purpose", sa.Text, primary_key=True),
    sa.Column("epsilon", sa.Float, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
)
# What operators asked for and what became of it; rows are only added, and each digest covers all before it.
ACTIONS = sa.Table(
    "actions",
    META,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("campaign", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("details", sa.Text, nullable=False),
    sa.Column("digest", sa.LargeBinary(32), nullable=False),
)
# One row for each thing done that must not be forgotten: a freeze, a sealing, an expense, a withdrawal, an operator's
# action. The other server remembers the newest it was shown, so that an older database is noticed (`history.py`).
HISTORY = sa.Table(
    "history",
    META,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("generation", sa.Integer, nullable=False),  # one more with every rollback that an operator accepted
    sa.Column("nonce", sa.LargeBinary(16), nullable=False),
)
# "own" says whether this server is on hold, "peer" what it has seen of the other server's history and compared since,
# "peer claimed" what that has said last.
STANDING = sa.Table(
    "standing",
    META,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("mark", sa.LargeBinary(32), nullable=False),
    sa.Column("signing_key", sa.Text, nullable=False),  # whose history it is
    sa.Column("problem", sa.Text),  # why nothing is sealed, spent or disclosed
    sa.Column("since", sa.Text),
)
# What does not go on, and since when; see `troubles.py`.
TROUBLES = sa.Table(
    "troubles",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("wave", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("since", sa.Float, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
)
# Background work: whoever holds the lease does it; when the lease has run out, anybody may go on with it.
JOBS = sa.Table(
    "jobs",
    META,
    sa.Column("campaign", sa.LargeBinary(32), primary_key=True),
    sa.Column("wave", sa.Integer, primary_key=True),
    sa.Column("phase", sa.Text, nullable=False),
    sa.Column("progress", sa.Float, nullable=False),
    sa.Column("problem", sa.Text),
    sa.Column("owner", sa.Text),
    sa.Column("until", sa.Float, nullable=False),  # seconds since 1970: the end of the lease, or when to try again
)
