// A list page while it is searched: clean addresses, a history of searches, the focus. It works without all of it.
(() => {
  "use strict";
  const form = document.getElementById("search");
  const words = document.getElementById("q");
  let isTyping = false;
  let open = [];

  // What is left empty is not part of the address.
  form.addEventListener("formdata", (event) => {
    const kept = [...event.formData].filter(([, value]) => value.trim());
    for (const name of new Set(event.formData.keys())) event.formData.delete(name);
    for (const [name, value] of kept) event.formData.append(name, value);
  });

  // A search that is being typed has one entry in the history; what is chosen or submitted has one of its own.
  document.addEventListener("htmx:beforeHistoryUpdate", (event) => {
    const { history, requestConfig } = event.detail;
    const path = new URL(history.path, location.href);
    const isSame = path.pathname + path.search === location.pathname + location.search;
    const typed = requestConfig.triggeringEvent?.type === "input";
    if (isSame || (typed && isTyping)) history.type = "replace";
    isTyping = typed;
  });
  words?.addEventListener("change", () => (isTyping = false));

  // What is folded out stays so, the box shows the words that were searched, and the focus stays where the change is.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target.id === "results")
      open = [...event.detail.target.querySelectorAll("details[open]")].map((each) => each.id);
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    const results = document.getElementById("results");
    if (!results || event.detail.target.id !== "results") return;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    const typed = event.detail.requestConfig.triggeringEvent?.type === "input";
    if (words && !typed) words.value = results.dataset.q;
    const count = document.getElementById("count");
    document.getElementById("said").textContent = count.textContent;
    if (document.activeElement === document.body) count.focus({ preventScroll: true });
  });
  // A page of the history is loaded as it was: its list and its box belong together.
  document.addEventListener("htmx:historyCacheMiss", (event) => {
    event.preventDefault();
    location.reload();
  });
})();
