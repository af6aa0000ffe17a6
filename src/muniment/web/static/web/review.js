// Keys of the review queue, outside of input fields and while they are turned on. Everything works without them.
(() => {
  "use strict";
  const said = document.getElementById("keys-said");
  const help = document.getElementById("shortcuts");
  let pending = null;

  const say = (text) => {
    if (said) said.textContent = text;
  };
  const items = () => [...document.querySelectorAll(".inbox tbody a.serif")];
  const here = () => items().findIndex((link) => link.closest("tr").contains(document.activeElement));

  const move = (step) => {
    const found = items();
    if (!found.length) return false;
    const at = here();
    const to = at < 0 ? (step > 0 ? 0 : found.length - 1) : Math.min(Math.max(at + step, 0), found.length - 1);
    found[to].focus();
    found[to].closest("tr").scrollIntoView({ block: "nearest" });
    return true;
  };

  const select = () => {
    const box = items()[here()]?.closest("tr").querySelector("[name=item]");
    if (!box) return;
    box.checked = !box.checked;
    say(box.getAttribute("aria-label") + (box.checked ? " ✓" : " ✗"));
  };

  // A decision is confirmed: the key leads to the button or to the note, and Enter or Ctrl+Enter decides.
  const decide = (key) => {
    const button = document.querySelector(`button[data-key="${key}"]`);
    if (!button) return;
    const note = key === "a" ? null : button.form.querySelector("textarea[name=note]");
    for (const each of document.querySelectorAll("button.chosen")) each.classList.remove("chosen");
    button.classList.add("chosen");
    pending = note ? button : null;
    (note ?? button).focus();
    (note ?? button).scrollIntoView({ block: "nearest" });
    say(`${button.textContent.trim()}: ${note ? "Ctrl+Enter" : "Enter"}`);
  };

  const isTyping = (target) =>
    target.isContentEditable || target.closest("input:not([type=checkbox]), textarea, select, dialog[open]");

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (key === "Enter" && (event.ctrlKey || event.metaKey) && target.name === "note" && pending) {
      event.preventDefault();
      target.form.requestSubmit(pending);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(target)) return;
    if (key === "j" || key === "k") {
      if (!move(key === "j" ? 1 : -1) && key === "j") document.querySelector("a[data-key=j]")?.click();
    } else if (key === "x") select();
    else if (key === "a" || key === "r" || key === "c") decide(key);
    else if (key === "u") document.querySelector("a[data-key=u]")?.click();
    else if (key === "?") help?.showModal();
    else return;
    event.preventDefault();
  });
})();
