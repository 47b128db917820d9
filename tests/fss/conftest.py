"""Tests that must hold for both back ends ask for `each_backend`."""

from collections.abc import Iterator

import pytest

from fss import BackendError
from fss.backends import using


@pytest.fixture(scope="module", params=["numpy", "native"])
def each_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a module's tests once with each back end, whichever of them is the installation's own."""
    try:
        with using(request.param):
            yield request.param
    except BackendError as error:
        pytest.skip(str(error))
