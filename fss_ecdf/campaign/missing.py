"""Missing values: what stands in a file where nothing is known."""

WORDS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "missing", "nd", ".", "-", "--", "?"})


def is_missing(value: object) -> bool:
    """Whether this stands for a value that is not known: one of these words, None, or a float that is no number."""
    if value is None or (isinstance(value, float) and value != value):  # also numpy's
        return True
    return isinstance(value, str) and value.strip().lower() in WORDS
