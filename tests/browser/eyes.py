"""What is wrong with a page for anyone's eyes, hands and settings: axe, both themes, large text, a phone."""

from collections.abc import Iterable
from typing import Any

from axe_playwright_python.sync_playwright import Axe

from browser.tour import origin
from services.product import Product

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
    "preload": False,  # no rule of these needs style sheets or media, which would be fetched again
}
CONTRAST = {**RULES, "runOnly": {"type": "rule", "values": ["color-contrast"]}}
ON_A_PHONE = {
    **RULES,
    "runOnly": {"type": "rule", "values": ["color-contrast", "target-size", "scrollable-region-focusable"]},
    "rules": {"target-size": {"enabled": True}},
}
"""What the width of the page decides; all rules are checked on the desk."""
RUN_AXE = """([options, proven]) => {
  const known = new Set(proven.split(" ")), looks = new Map(), chosen = [], found = [];
  const digest = (text) => {
    let [high, low] = [0xdeadbeef, 0x41c6ce57];
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      [high, low] = [Math.imul(high ^ code, 2654435761), Math.imul(low ^ code, 1597334677)];
    }
    return [high, low].map((half) => (half >>> 0).toString(36)).join("");
  };
  const look = (element) => {
    if (!element) return "";
    if (!looks.has(element)) {
      const { color, backgroundColor, backgroundImage, opacity, fontSize, fontWeight, textShadow, filter, position } =
        getComputedStyle(element);
      const styles = [color, backgroundColor, backgroundImage, opacity, fontSize, fontWeight, textShadow, filter];
      const names = [element.tagName, element.getAttribute("class"), element.disabled, element.ariaDisabled, position];
      looks.set(element, digest([look(element.parentElement), ...names, ...styles].join()));
    }
    return looks.get(element);
  };
  const hasText = (element) =>
    element.matches("input, select, textarea") ||
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  for (const element of document.body.querySelectorAll("*")) {
    if (!hasText(element) || !element.checkVisibility() || known.has(look(element))) continue;
    known.add(look(element));
    found.push(look(element));
    chosen.push(element);
  }
  if (!chosen.length && String(options.runOnly.values) === "color-contrast") return [[], ""];
  chosen.forEach((element) => element.setAttribute("data-unproven", ""));
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-unproven]" }] });
  return axe.run(document, options).then(({ violations }) => {
    chosen.forEach((element) => element.removeAttribute("data-unproven"));
    const faults = violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map(({ html }) => html.slice(0, 160))]);
    return [faults, found.join(" ")];
  });
}"""
"""
Checks the contrast of one text of each look that is not proven; gives the faults and these looks.

The look of a text is what its contrast depends on: names, classes, colors and sizes of its element and of all elements
around it, as theme and width make them. The rows of a list look alike, and so do the frames of all pages: to check each
of them again took half of the processor's time of all these tests. It gives the faults alone, because passing on all
that axe says of a page takes a fifth of the time.
"""
TOO_BIG = """() => [
  ...(document.documentElement.scrollWidth > innerWidth ? ["runs over"] : []),
  ...[...document.querySelectorAll(".mark, .button, .pill, .chip, th, dt, dd")]
    .filter((each) => each.checkVisibility() && !each.closest(".unseen"))
    .filter((each) => getComputedStyle(each).overflowX !== "visible")
    .filter((each) => each.scrollWidth > each.clientWidth + 1)
    .map((each) => each.outerHTML.slice(0, 160)),
  ...[...document.querySelectorAll(".listing > .mark")]
    .filter((each) => each.checkVisibility() && each.nextElementSibling)
    .filter((each) => each.getBoundingClientRect().right > each.nextElementSibling.getBoundingClientRect().left)
    .map((each) => `covered: ${each.outerHTML.slice(0, 160)}`),
]"""
"""What text of twice the size does not fit into."""
NARROW = """() => [...document.querySelectorAll(".scroll.stacked td[data-label]")]
    .filter((cell) => cell.checkVisibility() && !cell.closest(".rows"))
    .filter((cell) => cell.getBoundingClientRect().width < cell.parentElement.getBoundingClientRect().width * 0.9)
    .map((cell) => cell.outerHTML.slice(0, 160))"""
"""The cells of a row that a phone shows below each other, if they keep the width of a column."""
_AXE = Axe().axe_script
_proven: set[str] = set()
"""The looks of texts with enough contrast on the pages that this process has checked."""


def violations(page: Any, rules: dict[str, Any] = RULES) -> list[Any]:
    """Return which of *rules* the page breaks: the name of each, and the first three elements."""
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(_AXE)
    # One text: a list of thousands is taken apart and written again, item by item, on its way to the page.
    faults, looks = page.evaluate(RUN_AXE, [rules, " ".join(_proven)])
    if not faults:  # a look with a fault would hide it on the next page
        _proven.update(looks.split())
    return list(faults)


def in_the_dark(page: Any) -> list[Any]:
    """Return the faults of contrast on a page in its dark colors, and leave it in them."""
    page.emulate_media(color_scheme="dark")
    return violations(page, CONTRAST)


class Watch:
    """Notes what a page must not do."""

    def __init__(self, page: Any, own: str) -> None:
        self.seen: list[str] = []
        page.on("console", lambda message: message.type in {"error", "warning"} and self.seen.append(message.text))
        page.on("pageerror", lambda error: self.seen.append(str(error)))
        page.on("request", lambda request: request.url.startswith((own, "data:")) or self.seen.append(request.url))


def look_at(page: Any, site: Product, paths: Iterable[str]) -> None:
    """
    Visit *paths*: nothing is wrong for anyone, and nothing is asked of others.

    Nothing runs over at 320 px, nor with text of twice the size, which is cut nowhere.
    """
    faults = []
    for path in paths:
        watch = Watch(page, origin(site))
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme="light")
        answer = page.goto(path)
        faults += look(page, path)
        missing = "Failed to load resource" if answer.status >= 400 else "\0"
        faults += [(path, "seen", each) for each in watch.seen if missing not in each]
    assert faults == [], faults


def look(page: Any, name: str) -> list[Any]:
    """Return what is wrong with the page that is open: on a desk, in the dark, on a phone, with large text."""
    faults: list[Any] = [(name, "light", each) for each in violations(page)]
    page.evaluate("document.documentElement.style.fontSize = '32px'")
    faults += [(name, "200 %", each) for each in page.evaluate(TOO_BIG)]
    page.evaluate("document.documentElement.style.fontSize = ''")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 320, "height": 640})
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > 320:
        faults.append((name, "320 px", wide))
    page.set_viewport_size({"width": 390, "height": 844})
    faults += [(name, "phone, narrow", cell) for cell in page.evaluate(NARROW)]
    faults += [(name, "phone, dark", each) for each in violations(page, ON_A_PHONE)]
    page.set_viewport_size({"width": 1280, "height": 900})
    faults += [(name, "dark", each) for each in in_the_dark(page)]  # what a phone does not show
    page.emulate_media(color_scheme="light")
    return faults
