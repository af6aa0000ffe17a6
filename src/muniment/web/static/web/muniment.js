// Small conveniences: the theme, the header's account link, copying, a busy button. Everything works without them.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("scripted");
  let kept = null;
  try {
    kept = localStorage.getItem("theme");
  } catch {
    // A browser without storage follows the system.
  }
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;

  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  // A public page is the same for everyone. If a cookie says that an account may be signed in, one request asks which.
  const maySee = /(?:^|; )signed_in=1/.test(document.cookie);
  root.classList.toggle("signed-in", maySee);
  const showAccount = async () => {
    const link = document.querySelector(".account .for-owners");
    if (!link || !maySee) return;
    let told;
    try {
      const answer = await fetch(`/accounts/menu?page=${encodeURIComponent(location.pathname)}`);
      if (!answer.ok) return;
      told = await answer.json();
    } catch {
      return; // The link leads to the account.
    }
    if (!told.account) {
      root.classList.remove("signed-in");
      return;
    }
    link.outerHTML = told.menu;
    if (!told.page) return;
    const beside = document.querySelector(".crumbs")?.appendChild(document.createElement("a"));
    for (const own of [beside, document.querySelector("[data-claim]")]) {
      if (!own) continue;
      own.href = told.page.address;
      own.textContent = told.page.label;
    }
  };

  document.addEventListener("click", async (event) => {
    for (const menu of document.querySelectorAll(".menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
    const theme = event.target.closest(".theme");
    if (theme) {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        localStorage.setItem("theme", root.dataset.theme);
      } catch {
        // The choice holds for this page.
      }
      return;
    }
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      const label = (copy.dataset.label ??= copy.textContent);
      const text = copy.parentElement.querySelector("pre, input, output");
      try {
        await navigator.clipboard.writeText(text.value ?? text.textContent);
        copy.textContent = copy.dataset.done;
      } catch {
        copy.textContent = copy.dataset.failed;
      }
      setTimeout(() => (copy.textContent = label), 2000);
    }
  });

  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.querySelector(".menu[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });

  // On a phone the tabs are a strip: the one that is open is in sight. What was refused is where one goes on.
  document.addEventListener("DOMContentLoaded", () => {
    showAccount();
    for (const tab of document.querySelectorAll(":is(.tabs, .steps, .console > nav) [aria-current]")) {
      const strip = tab.closest(".console > nav") ?? tab.closest("ul, ol");
      const [place, around] = [tab.getBoundingClientRect(), strip.getBoundingClientRect()];
      strip.scrollLeft += place.left - around.left - (strip.clientWidth - place.width) / 2;
    }
    document.querySelector('main [aria-invalid="true"]')?.focus();
    // This page answers a form that it refused. Going back to it asks for the page, not for the form to be sent again.
    if (document.querySelector("form[data-answered]")) history.replaceState(history.state, "", location.href);
  });

  // A color that is entered as text has a picker beside it.
  document.addEventListener("DOMContentLoaded", () => {
    for (const text of document.querySelectorAll("input[data-color]")) {
      const picker = document.createElement("input");
      picker.type = "color";
      picker.setAttribute("aria-label", `${document.querySelector(`label[for="${text.id}"]`)?.textContent}: ${text.dataset.color}`);
      const follow = () => {
        if (/^#[0-9a-f]{6}$/i.test(text.value)) picker.value = text.value;
      };
      picker.addEventListener("input", () => (text.value = picker.value));
      text.addEventListener("input", follow);
      follow();
      text.after(picker);
    }
  });

  // A form answers at once and is sent once.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.submitter?.formTarget === "_blank") return; // a preview: the form stays
    if (form.method !== "post" || form.dataset.sent || event.defaultPrevented) {
      if (form.dataset.sent) event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
    const button = event.submitter;
    if (button) {
      button.classList.add("busy");
      button.setAttribute("aria-disabled", "true");
    }
    setTimeout(() => delete form.dataset.sent, 8000);
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
    for (const button of document.querySelectorAll(".busy")) {
      button.classList.remove("busy");
      button.removeAttribute("aria-disabled");
    }
  });
})();
