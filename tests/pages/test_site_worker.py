"""The documentation's search, from a folder: a worker that lives in a frame hears and says what a worker does."""

from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.pages.visiting import Visit
from tools.site import __main__ as site


@pytest.mark.browser
def test_a_worker_in_a_frame_answers(driver: Chrome, tmp_path: Path) -> None:
    shim = Path(site.__file__).with_name("iframe-worker.js").read_text()
    (tmp_path / "shim.js").write_text(shim)
    (tmp_path / "worker.js").write_text("addEventListener('message', ({ data }) => postMessage({ twice: 2 * data }))")
    (tmp_path / "page.html").write_text("<!doctype html><title>x</title><body><script src='shim.js'></script></body>")
    visit = Visit(driver)
    visit.open((tmp_path / "page.html").as_uri())
    visit.run(
        "window.said = []; const w = new Worker('worker.js');"
        "w.addEventListener('message', ({ data }) => said.push(data.twice)); for (const x of [1, 21]) w.postMessage(x)"
    )
    visit.wait(lambda: visit.run("return said") == [2, 42], "it answers each once")
