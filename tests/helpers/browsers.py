"""A real browser without a network, and what it sees of a page."""

from __future__ import annotations

import json

LOOK = """
const width = document.documentElement.clientWidth;
return {
    width: width,
    scroll: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth),
    pictures: [...document.images].map(i => {
        const r = i.getBoundingClientRect();
        return {loaded: i.complete && i.naturalWidth > 0, left: r.left, right: r.right,
                width: r.width, height: r.height, seen: i.checkVisibility()};
    }),
    outside: [...document.querySelectorAll("h1, h2, p, .fact, figcaption, .wide")]
        .filter(e => e.getBoundingClientRect().right > width + 1).map(e => e.textContent),
    spilt: [...document.querySelectorAll(".fact, h1, p")]
        .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent),
};
"""


def opened(browser, path, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(path.as_uri())
    return browser.execute_script(LOOK)


def requests(browser):
    """Addresses that were asked for since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    urls = [params["request"]["url"] for params in sent]
    return [url for url in urls if not url.startswith("chrome://")]  # the browser's own parts
