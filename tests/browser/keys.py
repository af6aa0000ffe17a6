"""Hands at a keyboard, without a mouse: what they use is reached with Tab."""

from typing import Any

MOST_TABS = 250
"""More than any page has stops for Tab."""


class Keys:
    """
    Work at a page by keyboard alone.

    Args:
        page: a browser's page.
    """

    def __init__(self, page: Any) -> None:
        self.page = page

    def reach(self, target: Any) -> None:
        """Press Tab until *target* has the focus, from where the focus is."""
        target.wait_for()
        found = target.element_handle()
        for _ in range(MOST_TABS):
            if found.evaluate("(each) => each === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {target}")

    def press(self, target: Any, key: str = "Enter") -> None:
        """Press a key on *target*."""
        self.reach(target)
        self.page.keyboard.press(key)

    def write(self, target: Any, text: str) -> None:
        """Put *text* into a field, as typing and pasting do."""
        self.reach(target)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def choose(self, target: Any, text: str) -> None:
        """Choose the option of a list that begins with *text*."""
        self.reach(target)
        self.page.keyboard.type(text)
