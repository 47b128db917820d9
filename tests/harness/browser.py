"""A real Chromium for tests and benchmarks: Debian's, driven by its own driver, with a profile of its own."""

import base64
import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from selenium.common.exceptions import SessionNotCreatedException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.harness.server_pair import LivePair

MISSING = "no browser: chromium and chromium-driver are needed (apt-get install chromium chromium-driver)"
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # of a browser in a container; it opens our own pages only
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--force-color-profile=srgb",
)


def programs() -> tuple[str, str] | None:
    """Where browser and driver are."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def chromium(arguments: Sequence[str] = (), downloads: Path | None = None) -> Iterator[Chrome]:
    """One browser, until the end of the block."""
    found = programs()
    if found is None:
        raise RuntimeError(MISSING)
    options = ChromeOptions()
    options.binary_location = found[0]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if downloads is not None:
        several = {"profile.default_content_setting_values.automatic_downloads": 1}
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads), **several})
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for argument in (*_ARGUMENTS, f"--user-data-dir={profile}", *arguments):
            options.add_argument(argument)
        try:
            driver = Chrome(options=options, service=Service(found[1]))
        except SessionNotCreatedException:  # on a busy machine it may take too long for its driver, once
            driver = Chrome(options=options, service=Service(found[1]))
        try:
            driver.set_script_timeout(300)
            yield driver
        finally:
            driver.quit()


def trusting(pair: LivePair) -> str:
    """The option by which the browser takes exactly these two development certificates."""
    spki = []
    for role in (0, 1):
        certificate = x509.load_pem_x509_certificate((pair.folder / f"server{role}" / "cert.pem").read_bytes())
        form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        spki.append(base64.b64encode(hashlib.sha256(certificate.public_key().public_bytes(*form)).digest()).decode())
    return "--ignore-certificate-errors-spki-list=" + ",".join(spki)
