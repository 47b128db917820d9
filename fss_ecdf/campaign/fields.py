"""Types of fields that hold what people write, for every model that reads them."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from fss_ecdf.campaign.text import check_address, check_text

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"

PLAIN = AfterValidator(check_text)
Name = Annotated[str, Field(min_length=1, max_length=200), PLAIN]  # a title, a stratum, a label
Address = Annotated[str, AfterValidator(check_address)]


def _time(value: object) -> object:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time needs its zone, for example 2026-03-31T18:00:00Z")
        if not 1970 <= value.year < 9999:
            raise ValueError("a time lies between 1970 and 9998")
        return value.astimezone(UTC).replace(microsecond=0)
    return value


def _write_time(value: datetime) -> str:
    return value.strftime(TIME_FORMAT)


Time = Annotated[datetime, BeforeValidator(_time), PlainSerializer(_write_time)]
