"""The operator's console as somebody uses it: finding campaigns, servers and sites on its page, pressing buttons."""

import numpy as np
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from fss_ecdf.campaign.campaign import Campaign
from tests.harness.server_pair import LivePair, envelopes, name
from tests.pages.visiting import Visit


def opened(visit: Visit, campaign: Campaign) -> None:
    visit.wait(lambda: visit.run("return document.querySelector(arguments[0])", at(campaign)), "it is listed")
    visit.wait(lambda: _click(visit, at(campaign)), "it can be opened")
    visit.wait(
        lambda: visit.shown("campaign") and visit.text("campaign-head") == campaign.title, "the campaign is open"
    )


def _click(visit: Visit, selector: str) -> bool:
    visit.run("arguments[0].scrollIntoView({block: 'center'})", visit.driver.find_element(By.CSS_SELECTOR, selector))
    visit.driver.find_element(By.CSS_SELECTOR, selector).click()
    return True


def at(campaign: Campaign) -> str:
    return f"[data-id='{name(campaign)}']"


def row(visit: Visit, key: str) -> list[str]:
    return [e.text for e in visit.driver.find_elements(By.CSS_SELECTOR, f"#states [data-state={key}]")]


def card(visit: Visit, role: int) -> str:
    return visit.driver.find_element(By.CSS_SELECTOR, f"[data-server='{role}']").text


def admitted(visit: Visit, labels: str, quota: str) -> None:
    visit.click("admit")
    visit.find("sure-labels").send_keys(labels)
    visit.find("sure-quota").send_keys(Keys.CONTROL, "a")
    visit.find("sure-quota").send_keys(quota)
    visit.click("yes")


def press(visit: Visit, label: str) -> None:
    """A button, where it is in a menu, by way of that."""
    entry = f"[aria-label='{label}']"

    def pressed() -> bool:
        menu = visit.run("return document.querySelector(arguments[0])?.closest('[popover]')?.id ?? ''", entry)
        if menu and not visit.shown(menu):
            _click(visit, f"[popovertarget='{menu}']")
        visit.driver.find_element(By.CSS_SELECTOR, entry).click()
        return True

    visit.wait(pressed, f"{label} can be pressed")


def site(visit: Visit, label: str) -> list[str]:
    script = (
        "const r = [...document.querySelectorAll('#sites tbody tr')].find((r) => r.firstElementChild.textContent"
        " === arguments[0]); return r ? [...r.children].slice(1, 3).map((c) => c.textContent) : []"
    )
    return list(visit.run(script, label))


def send(pair: LivePair, campaign: Campaign, token: str, count: int, role: int | None = None) -> list[int]:
    data = envelopes(campaign, np.arange(count))
    return [pair.upload(r, campaign, data[r], token).status_code for r in (0, 1) if role in (None, r)]
