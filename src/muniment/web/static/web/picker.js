// The people picker: suggests public profiles while a name is typed. Without it, a name is matched when it is saved.
(() => {
  "use strict";
  const PAUSE_MS = 150;
  const list = document.createElement("ul");
  const status = document.createElement("p");
  list.className = "people-found";
  list.id = "people-found";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  status.className = "unseen";
  status.setAttribute("role", "status");
  let input = null;
  let active = -1;
  let asked = null;
  let timer = 0;

  const slugOf = (name) => document.getElementsByName(name.name.replace(/-name$/, "-slug"))[0];

  const activate = (place) => {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = place;
    const option = list.children[active];
    if (!option) {
      input?.removeAttribute("aria-activedescendant");
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
    list.hidden = true;
    input?.setAttribute("aria-expanded", "false");
  };

  // The table scrolls, so the list is placed over the page.
  const place = () => {
    const box = input.getBoundingClientRect();
    const width = Math.min(Math.max(box.width, 280), innerWidth - 16);
    list.style.width = `${width}px`;
    list.style.left = `${Math.max(8, Math.min(box.left, innerWidth - width - 8))}px`;
    list.style.top = `${box.bottom + 4}px`;
  };

  const ask = async () => {
    const own = (asked = new AbortController());
    const target = input;
    const rows = target.closest("[data-people]");
    try {
      const query = new URLSearchParams({ q: target.value.trim() });
      const answer = await fetch(`${rows.dataset.people}?${query}`, { signal: own.signal });
      if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
      const found = await answer.text();
      if (own.signal.aborted || document.activeElement !== target) return;
      list.innerHTML = found; // the server's own markup, with every value escaped
      activate(-1);
      const count = list.children.length;
      list.hidden = !count;
      target.setAttribute("aria-expanded", String(count > 0));
      status.textContent = count ? `${count} ${rows.dataset.found}` : "";
      if (count) place();
    } catch {
      if (asked === own && !own.signal.aborted) close();
    }
  };

  const typed = () => {
    const slug = slugOf(input);
    // A name that was changed is another person than the chosen one.
    if (slug && input.dataset.chosen && input.value !== input.dataset.chosen) {
      slug.value = slug.defaultValue === slug.value ? slug.value : "";
      delete input.dataset.chosen;
    }
    clearTimeout(timer);
    asked?.abort();
    if (input.value.trim().length < 2 && !(input.value.trim() > "\u02ff")) close();
    else timer = setTimeout(ask, PAUSE_MS);
  };

  const choose = (option) => {
    const { name, slug } = option.dataset;
    const field = slugOf(input);
    input.value = input.dataset.chosen = name;
    if (field) field.value = slug;
    status.textContent = `${input.closest("[data-people]").dataset.linked}: ${slug}`;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    close();
  };

  document.addEventListener("focusin", (event) => {
    if (event.target === input || !event.target.matches?.("input[data-person]")) return;
    input = event.target;
    const rows = input.closest("[data-people]");
    if (list.parentElement !== rows) rows.append(list, status);
    list.setAttribute("aria-label", rows.dataset.suggestions);
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-expanded", "false");
    input.setAttribute("aria-controls", list.id);
  });
  document.addEventListener("focusout", (event) => {
    if (event.target === input) close();
  });
  document.addEventListener("input", (event) => {
    if (event.target === input && !event.isComposing) typed();
  });
  document.addEventListener("compositionend", (event) => {
    if (event.target === input) typed();
  });
  document.addEventListener("keydown", (event) => {
    if (event.target !== input || event.isComposing) return;
    const count = list.hidden ? 0 : list.children.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!count) typed();
      else activate(((active + (event.key === "ArrowDown" ? 2 : count + 1)) % (count + 1)) - 1);
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      choose(list.children[active]);
    } else if (event.key === "Escape" && count) {
      event.preventDefault();
      close();
    }
  });
  // A click must not take the focus from the name before it arrives.
  list.addEventListener("mousedown", (event) => {
    event.preventDefault();
    const option = event.target.closest("[role=option]");
    if (option) choose(option);
  });
  addEventListener("scroll", (event) => event.target !== list && !list.hidden && close(), true);
  addEventListener("resize", close);
})();
