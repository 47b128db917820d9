"""The documentation's site: the pages of docs/ and what follows from the code, as HTML that needs no network."""
