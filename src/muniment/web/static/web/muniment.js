// The small conveniences: the theme, copying, a busy button. Everything works without them.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("scripted");
  let kept = null;
  try {
    kept = localStorage.getItem("theme");
  } catch {
    // A browser that keeps nothing follows the system.
  }
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;

  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  document.addEventListener("click", async (event) => {
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
      const text = copy.parentElement.querySelector("pre, input, output");
      try {
        await navigator.clipboard.writeText(text.value ?? text.textContent);
        copy.textContent = "Copied";
      } catch {
        copy.textContent = "Select and copy";
      }
      setTimeout(() => (copy.textContent = "Copy"), 2000);
    }
  });

  // On a phone the tabs are a strip: the one that is open is in sight. What was refused is where one goes on.
  document.addEventListener("DOMContentLoaded", () => {
    for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
      const strip = tab.closest(".tabs");
      strip.scrollLeft = tab.offsetLeft - strip.offsetLeft - (strip.clientWidth - tab.offsetWidth) / 2;
    }
    document.querySelector('main [aria-invalid="true"]')?.focus();
  });

  // A form answers at once and is sent once.
  document.addEventListener("submit", (event) => {
    const form = event.target;
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
