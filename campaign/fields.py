"""Types of fields that hold what people write, for every model that reads them."""

from typing import Annotated

from pydantic import AfterValidator, Field

from campaign.text import check_address, check_text

PLAIN = AfterValidator(check_text)
Name = Annotated[str, Field(min_length=1, max_length=200), PLAIN]  # a title, a stratum, a label
Address = Annotated[str, AfterValidator(check_address)]
