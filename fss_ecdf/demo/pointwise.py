"""The bytes that a party would send if it answered every threshold separately, as the paper compares."""

POSITION, ID, ELEMENT = 4, 16, 8


def party_bytes(thresholds: int) -> int:
    """One party and one server: position, id and element for every threshold, and empty answers."""
    return thresholds * (POSITION + ID + ELEMENT)
