// The page that asks a statement: it can be run by Ctrl-Enter, and canceled. Both work without it, slower.
(() => {
  "use strict";
  const form = document.getElementById("statement");
  const cancel = document.getElementById("cancel");
  form.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target === form) cancel.hidden = false;
  });
  form.addEventListener("htmx:afterRequest", () => (cancel.hidden = true));
  // The server ends a statement whose visitor has gone.
  cancel.addEventListener("click", () => {
    htmx.trigger(form, "htmx:abort");
    document.getElementById("sql").focus();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
})();
