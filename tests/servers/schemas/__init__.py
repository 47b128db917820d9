"""python -m tests.servers.schemas: this program's schema with a few rows of every kind, as SQL of both databases.

Once for each released schema, into this folder; a dump is never made again. `test_migrations.py` reads them.
"""
