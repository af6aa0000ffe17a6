// The page that asks a statement: it can be run by Ctrl-Enter, canceled, and written in an editor that completes it.
// All of it works without, slower: the text area stays what the form sends.
(() => {
  "use strict";
  const form = document.getElementById("statement");
  const cancel = document.getElementById("cancel");
  const area = document.getElementById("sql");
  let focus = () => area.focus();
  form.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target === form) cancel.hidden = false;
  });
  form.addEventListener("htmx:afterRequest", () => (cancel.hidden = true));
  // The server ends a statement whose visitor has gone.
  cancel.addEventListener("click", () => {
    htmx.trigger(form, "htmx:abort");
    focus();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });

  const hint = document.getElementById("editor-hint");
  const load = async () => {
    const { edit } = await import(form.dataset.editor);
    const words = { label: form.dataset.label, description: hint.textContent.trim() };
    const editor = edit(area, { ...words, phrases: { Completions: form.dataset.completions } });
    focus = editor.focus;
    hint.hidden = false;
    const answer = await fetch("/api/v1/tables");
    if (!answer.ok) return;
    const tables = {};
    for (const table of (await answer.json()).data) {
      tables[table.name] = table.columns.map(({ name, type, help }) => ({ label: name, detail: type, info: help }));
    }
    editor.know(tables);
  };
  // After everything else, and not for those who ask to save data.
  const later = window.requestIdleCallback ?? ((task) => setTimeout(task, 200));
  if (!navigator.connection?.saveData) addEventListener("load", () => later(() => load().catch(() => {})));
})();
