// The row editor: adds and moves rows, and sends only the rows that were changed. Everything works without it.
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
    row.classList.remove("blank"); // Blank rows are for those without a script.
    for (const fault of row.querySelectorAll(".fault")) fault.remove();
    for (const control of row.querySelectorAll("input, select, textarea")) {
      control.value = "";
      for (const name of ["aria-invalid", "aria-describedby", "aria-activedescendant", "data-chosen"]) control.removeAttribute(name);
      control.id = control.name = control.name.replace(/-\d+-/, `-${rows.rows.length}-`);
    }
    rows.append(row);
    row.querySelector("input, select, textarea").focus();
    button.hidden = added >= Number(list.dataset.max);
  });

  // Two rows of the page exchange their places; at its edge, the number alone changes.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-move]");
    if (!button) return;
    const step = Number(button.dataset.move);
    const row = button.closest("tr");
    const other = step < 0 ? row.previousElementSibling : row.nextElementSibling;
    const [own, its] = [row, other].map((each) => each?.querySelector("[name$='-place']"));
    if (its) {
      [own.value, its.value] = [its.value, own.value];
      if (step < 0) other.before(row);
      else other.after(row);
    } else own.value = Math.max(1, Number(own.value) + step);
    button.focus();
    const list = button.closest("[data-rows]");
    const said = (list.querySelector(".moved") ?? list.appendChild(Object.assign(document.createElement("p"), { className: "unseen moved" })));
    said.setAttribute("role", "status");
    said.textContent = `${list.dataset.moved} ${own.value}`;
    own.dispatchEvent(new Event("change", { bubbles: true }));
  });
})();
