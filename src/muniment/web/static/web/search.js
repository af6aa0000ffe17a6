// The search box of every page shows results while typing. Without this file its form leads to /search.
(() => {
  "use strict";
  const PAUSE_MS = 30;
  const SHOWN = 8;
  const KEPT = 50;
  const PATHS = { company: "/companies/", person: "/people/", framework: "/frameworks/" };
  const form = document.querySelector("form.everything");
  const input = form?.querySelector("input");
  if (!input) return;
  const words = form.dataset;
  const number = (value) => value.toLocaleString(document.documentElement.lang);

  const make = (name, className, text) => {
    const made = document.createElement(name);
    made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const panel = make("div", "found");
  const note = make("p", "note small quiet");
  const list = make("div", "options");
  const status = make("p", "unseen");
  panel.hidden = true;
  list.id = "found";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", words.results);
  status.setAttribute("aria-live", "polite");
  panel.append(note, list);
  form.append(panel, status);
  for (const [name, value] of [
    ["role", "combobox"],
    ["aria-autocomplete", "list"],
    ["aria-expanded", "false"],
    ["aria-controls", list.id],
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

  const activate = (place) => {
    const options = list.children;
    options[active]?.setAttribute("aria-selected", "false");
    active = place;
    const option = options[active];
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

  // What others wrote becomes text, never markup.
  const option = (place, address, kind, name, symbol, summary) => {
    const made = make("a", "option");
    made.id = `found-${place}`;
    made.href = address;
    made.tabIndex = -1;
    made.setAttribute("role", "option");
    made.setAttribute("aria-selected", "false");
    const title = make("span", "name");
    title.append(make("bdi", "", name));
    if (symbol) title.append(" ", make("span", "mono quiet tiny", symbol));
    made.append(title);
    if (kind) made.append(make("span", "kind tiny", kind));
    if (summary) {
      const said = make("span", "said quiet tiny", summary);
      said.dir = "auto";
      made.append(said);
    }
    return made;
  };

  const everything = (place, q, total) => {
    const made = make("a", "option all");
    made.id = `found-${place}`;
    made.href = `/search?${new URLSearchParams({ q })}`;
    made.tabIndex = -1;
    made.setAttribute("role", "option");
    made.setAttribute("aria-selected", "false");
    made.append(`${words.all} ${words.open}`, make("bdi", "", q), total ? `${words.shut} (${number(total)})` : words.shut);
    return made;
  };

  const show = (q, found) => {
    const isClose = !found.data.length && found.closest?.length > 0;
    const shown = (isClose ? found.closest : found.data).slice(0, SHOWN);
    const formerly = new Map((found.closest ?? []).filter((each) => each.why.startsWith("Formerly")).map((each) => [each.kind + each.id, words.former.replace("$1", each.why.match(/"(.*?)"/)?.[1] ?? "")]));
    const total = Object.values(found.totals).reduce((sum, each) => sum + each, 0);
    activate(-1);
    list.replaceChildren(
      ...shown.map((each, place) =>
        option(place, PATHS[each.kind] + encodeURIComponent(each.id), words[each.kind], each.name, each.symbol, formerly.get(each.kind + each.id) || each.summary || each.type),
      ),
      everything(shown.length, q, total),
    );
    note.textContent = isClose ? words.close : shown.length ? "" : words.none;
    note.hidden = !note.textContent;
    panel.hidden = false;
    panel.scrollTop = 0;
    input.setAttribute("aria-expanded", "true");
    status.textContent = note.textContent || `${number(total)} ${words.count}`;
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
      const answer = await fetch(`/api/v1/search?${new URLSearchParams({ q, limit: SHOWN })}`, { signal: own.signal });
      if (answer.status === 429 || answer.status === 503) {
        quietUntil = performance.now() + 1000 * (Number(answer.headers.get("Retry-After")) || 2);
        timer = setTimeout(ask, quietUntil - performance.now());
        return;
      }
      if (!answer.ok) throw new Error(answer.statusText);
      const found = await answer.json();
      kept.set(q, found);
      if (kept.size > KEPT) kept.delete(kept.keys().next().value);
      if (asked === own && !own.signal.aborted) show(q, found);
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
    else if (kept.has(q)) show(q, kept.get(q));
    else timer = setTimeout(ask, PAUSE_MS);
  };

  input.addEventListener("input", (event) => {
    if (!event.isComposing) typed();
  });
  input.addEventListener("compositionend", typed);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const count = panel.hidden ? 0 : list.children.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!count) typed();
      else activate(((active + (event.key === "ArrowDown" ? 2 : count + 1)) % (count + 1)) - 1);
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      list.children[active].click();
    } else if (event.key === "Escape" && !panel.hidden) {
      event.preventDefault();
      close();
    }
  });
  // A click must not take the focus from the box before it arrives.
  panel.addEventListener("mousedown", (event) => event.preventDefault());
  panel.addEventListener("mousemove", (event) => {
    const place = [...list.children].indexOf(event.target.closest(".option"));
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
