"""Pages as a browser shows them."""

import base64
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tools.gallery.pictures import Picture
from tools.gallery.studies import Studies

WIDTH, HEIGHT = 1000, 1000
PATIENCE_S = 90.0


class Screens:
    def __init__(self, driver: Chrome, studies: Studies) -> None:
        self._driver, self._studies = driver, studies
        about = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", about)

    def look(self, picture: Picture, target: Path) -> None:
        looks: dict[str, Callable[[Picture], None]] = {"analyst": self._analyst, "operator": self._operator}
        if picture.screen == "party":
            self._party(picture)
            self._save(target, "main")
            return
        variables = self._studies.variables(picture.study)
        with subprocess.Popen(
            picture.command.split(),
            cwd=self._studies.folder,
            env={**self._studies.environment(), **variables},
            stdout=subprocess.PIPE,
            text=True,
        ) as console:
            assert console.stdout is not None
            try:
                self._driver.get(next(line.strip() for line in console.stdout if "/enter?secret=" in line))
                looks[picture.screen](picture)
                self._save(target, "#sites-part" if picture.screen == "operator" else "#pictures")
            finally:
                console.terminate()

    def _analyst(self, _: Picture) -> None:
        self._wait("document.querySelector('#pictures svg')", "the console is drawn")
        self._driver.execute_script("location.hash = 'view=roc&cut=760'")
        drawn = "document.querySelector('#operating') && !document.querySelector('#pictures.busy')"
        self._wait(drawn, "the view is drawn")

    def _operator(self, picture: Picture) -> None:
        name = self._studies.variables(picture.study)["FSS_CAMPAIGN_ID"]
        self._wait(f"document.querySelector(`[data-id='{name}']`)", "the campaign is listed")
        self._driver.execute_script("document.querySelector(arguments[0]).click()", f"[data-id='{name}']")
        self._wait("document.querySelectorAll('#sites tbody tr').length > 1", "its sites are listed")
        self._driver.execute_script("document.getElementById('campaign-head').blur(); scrollTo(0, 0)")

    def _party(self, picture: Picture) -> None:
        self._studies.run(picture.study, picture.command)
        token = self._studies.variables(picture.study)["FSS_UPLOAD_TOKEN"]
        self._driver.get(f"{(self._studies.folder / 'party.html').as_uri()}#token={token}")
        self._wait("document.body.dataset.state === 'study'", "both servers are asked")
        self._click("begin-file")
        values = self._studies.folder / "docs" / "examples" / "risk-scores.csv"
        self._driver.find_element(By.ID, "file").send_keys(str(values))
        self._wait("document.getElementById('file-read')", "the columns are shown")
        header = values.read_text().splitlines()[0].split(",")
        for id in (f"column-{header.index('score')}", f"group-column-{header.index('outcome')}", "review-button"):
            self._click(id)
        self._wait("document.querySelectorAll('#histogram rect.bar').length", "the preview is drawn")

    def _click(self, id: str) -> None:
        self._driver.execute_script("document.getElementById(arguments[0]).click()", id)

    def _wait(self, script: str, what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not self._run(script):
            if time.monotonic() > end:
                raise SystemExit(f"{what}: not so after {PATIENCE_S:g} s")
            time.sleep(0.1)

    def _run(self, script: str) -> Any:
        return self._driver.execute_script(f"return Boolean({script})")

    def _save(self, target: Path, last: str) -> None:
        """From the top of the page to the end of what is shown last."""
        end = f"Math.ceil(document.querySelector('{last}').getBoundingClientRect().bottom + scrollY + 16)"
        height = self._driver.execute_script(f"return {end}")
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
        shot = self._driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        target.write_bytes(base64.b64decode(shot["data"]))
