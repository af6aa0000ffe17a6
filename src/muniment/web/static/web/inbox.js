// Conveniences of the review queue: select all, and a saved reply goes into the note. Everything works without them.
(() => {
  "use strict";
  document.addEventListener("change", async (event) => {
    const { target } = event;
    if (target.id === "select-all") {
      for (const box of document.querySelectorAll("[name=item][form=several]")) box.checked = target.checked;
      return;
    }
    if (!target.dataset.insert || !target.value) return;
    const note = document.getElementById(target.dataset.insert);
    try {
      const answer = await fetch(`/review/replies/${encodeURIComponent(target.value)}/text`);
      if (!answer.ok) return;
      const text = await answer.text();
      note.value = note.value.trim() ? `${note.value.trim()}\n\n${text}` : text;
      target.value = "";
      note.focus();
    } catch {
      // The form sends the reply's number.
    }
  });
})();
