"""How results are shown: tables, report, console, commands."""
