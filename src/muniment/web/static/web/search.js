// The search box of every page shows results while typing. Without this file its form leads to /search.
(() => {
  "use strict";
  const PAUSE_MS = 30;
  const KEPT = 50;
  const form = document.querySelector("form.everything");
  const input = form?.querySelector("input");
  if (!input) return;

  const make = (name, className) => {
    const made = document.createElement(name);
    made.className = className;
    return made;
  };
  const panel = make("div", "found");
  const status = make("p", "unseen");
  panel.hidden = true;
  status.setAttribute("aria-live", "polite");
  form.append(panel, status);
  for (const [name, value] of [
    ["role", "combobox"],
    ["aria-autocomplete", "list"],
    ["aria-expanded", "false"],
  ])
    input.setAttribute(name, value);

  const kept = new Map();
  let active = -1;
  let asked = null;
  let timer = 0;
  let quietUntil = 0;

  const text = () => input.value.trim().replace(/\s+/g, " ").slice(0, 200);
  // One letter of an alphabet begins thousands of names; one of a script without spaces is a word.
  const isWorthAsking = (q) => q.length > 1 || q > "\u02ff";
  const options = () => [...panel.querySelectorAll("[role=option]")];

  const activate = (place) => {
    const all = options();
    all[active]?.setAttribute("aria-selected", "false");
    active = place;
    const option = all[active];
    if (!option) {
      input.removeAttribute("aria-activedescendant");
      return;
    }
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option.id);
  };

  const close = () => {
    clearTimeout(timer);
    asked?.abort();
    activate(-1);
    panel.hidden = true;
    status.textContent = "";
    input.setAttribute("aria-expanded", "false");
  };

  const show = (html) => {
    activate(-1);
    panel.innerHTML = html; // the server's own markup, with every value escaped
    panel.hidden = false;
    panel.scrollTop = 0;
    const list = panel.querySelector("[role=listbox]");
    input.setAttribute("aria-controls", list.id);
    input.setAttribute("aria-expanded", "true");
    status.textContent = list.dataset.said;
  };

  const ask = async () => {
    const q = text();
    const wait = quietUntil - performance.now();
    if (wait > 0) {
      timer = setTimeout(ask, wait);
      return;
    }
    const own = (asked = new AbortController());
    try {
      const answer = await fetch(`/search/box?${new URLSearchParams({ q })}`, { signal: own.signal });
      if (answer.status === 429 || answer.status === 503) {
        quietUntil = performance.now() + 1000 * (Number(answer.headers.get("Retry-After")) || 2);
        timer = setTimeout(ask, quietUntil - performance.now());
        return;
      }
      if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
      const found = await answer.text();
      kept.set(q, found);
      if (kept.size > KEPT) kept.delete(kept.keys().next().value);
      if (asked === own && !own.signal.aborted) show(found);
    } catch {
      // Aborted, or the network is away: the form still works.
      if (asked === own && !own.signal.aborted) close();
    }
  };

  const typed = () => {
    const q = text();
    clearTimeout(timer);
    asked?.abort();
    if (!isWorthAsking(q)) close();
    else if (kept.has(q)) show(kept.get(q));
    else timer = setTimeout(ask, PAUSE_MS);
  };

  input.addEventListener("input", (event) => {
    if (!event.isComposing) typed();
  });
  input.addEventListener("compositionend", typed);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const count = panel.hidden ? 0 : options().length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!count) typed();
      else activate(((active + (event.key === "ArrowDown" ? 2 : count + 1)) % (count + 1)) - 1);
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      options()[active].click();
    } else if (event.key === "Escape" && !panel.hidden) {
      event.preventDefault();
      close();
    }
  });
  // A click must not take the focus from the box before it arrives.
  panel.addEventListener("mousedown", (event) => event.preventDefault());
  panel.addEventListener("mousemove", (event) => {
    const place = options().indexOf(event.target.closest("[role=option]"));
    if (place >= 0 && place !== active) activate(place);
  });
  form.addEventListener("focusout", (event) => {
    if (!form.contains(event.relatedTarget)) close();
  });
  form.addEventListener("submit", close);
  window.addEventListener("pagehide", close);

  document.addEventListener("keydown", (event) => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
    const isShortcut =
      event.key === "/" ? isPlain && !isTyping : /^k$/i.test(event.key) && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    if (!isShortcut || event.isComposing) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
})();
