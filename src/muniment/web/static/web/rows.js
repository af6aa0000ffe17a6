// The row editor: offers further blank rows, and sends only the rows that were changed. Everything works without it.
(() => {
  "use strict";

  const isChanged = (control) => {
    if (control.type === "hidden") return false;
    if (control.type === "checkbox") return control.checked !== control.defaultChecked;
    if (control.tagName !== "SELECT") return control.value !== control.defaultValue;
    const shown = [...control.options].findIndex((option) => option.defaultSelected);
    return control.selectedIndex !== Math.max(shown, 0);
  };

  document.addEventListener("formdata", (event) => {
    for (const row of event.target.querySelectorAll("[data-rows] tbody tr:not([data-edited])")) {
      const controls = [...row.querySelectorAll("input, select, textarea")];
      if (!controls.some(isChanged)) for (const control of controls) event.formData.delete(control.name);
    }
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-add]");
    if (!button) return;
    const list = button.closest("[data-rows]");
    const rows = list.querySelector("tbody");
    const added = Number(list.dataset.added ?? 0) + 1;
    list.dataset.added = added;
    const row = rows.lastElementChild.cloneNode(true);
    for (const control of row.querySelectorAll("input, select, textarea")) {
      control.value = "";
      control.id = control.name = control.name.replace(/-\d+-/, `-${rows.rows.length}-`);
    }
    rows.append(row);
    row.querySelector("input, select, textarea").focus();
    button.hidden = added >= Number(list.dataset.max);
  });
})();
