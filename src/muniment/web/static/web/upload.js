// Sends the file of an upload link with a progress bar, and takes it by drag and drop. The form works without it.
(() => {
  "use strict";
  const form = document.getElementById("upload");
  const picker = form.elements.file;
  const button = form.querySelector("button");
  const fault = document.getElementById("fault");
  const sending = document.getElementById("sending");
  const max = Number(form.dataset.max);

  const complain = (text) => {
    const notice = document.createElement("div");
    const words = document.createElement("div");
    notice.className = "notice bad";
    words.textContent = text;
    notice.append(words);
    fault.replaceChildren(notice);
  };

  // The texts of the page have $1 and $2 for values.
  const said = (text, ...values) => text.replace(/\$(\d)/g, (_, place) => values[place - 1]);
  const number = (value) => value.toLocaleString(document.documentElement.lang);

  const faultOf = (file) => {
    const accepted = picker.accept.split(",").some((end) => file.name.toLowerCase().endsWith(end));
    if (!accepted) return said(form.dataset.kinds, picker.accept.replaceAll(",", ", "), file.name);
    if (!file.size) return form.dataset.empty;
    if (file.size > max) return said(form.dataset.large, number(file.size));
    if (file.size !== max && "exact" in form.dataset)
      return said(form.dataset.another, number(file.size));
    return "";
  };

  const rest = (isSending) => {
    sending.hidden = !isSending;
    button.disabled = picker.disabled = isSending;
    window.onbeforeunload = isSending ? (event) => event.preventDefault() : null;
  };

  const send = (file) => {
    const request = new XMLHttpRequest();
    const body = new FormData();
    body.append("file", file);
    request.open("POST", location.pathname);
    request.setRequestHeader("Accept", "text/html");
    request.responseType = "document";
    request.upload.addEventListener("progress", (event) => {
      const part = event.loaded / event.total;
      sending.querySelector("progress").value = part;
      document.getElementById("part").textContent = part < 1 ? `${Math.floor(100 * part)} %` : form.dataset.checking;
    });
    request.addEventListener("load", () => {
      rest(false);
      // The page says what became of the file, whether the form or this script has sent it.
      const shown = request.response?.getElementById("page");
      if (!shown) return complain(form.dataset.failed);
      const again = shown.querySelector("#upload");
      if (again) return fault.replaceChildren(...shown.querySelector("#fault").childNodes);
      document.title = request.response.title;
      document.getElementById("page").replaceWith(shown);
      document.getElementById("main").focus();
    });
    request.addEventListener("error", () => {
      rest(false);
      complain(form.dataset.lost);
    });
    rest(true);
    request.send(body);
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    fault.replaceChildren();
    const [file] = picker.files;
    const wrong = faultOf(file);
    if (wrong) complain(wrong);
    else send(file);
  });
  for (const kind of ["dragenter", "dragover"]) {
    form.addEventListener(kind, (event) => {
      event.preventDefault();
      form.classList.add("over");
    });
  }
  for (const kind of ["dragleave", "drop"]) form.addEventListener(kind, () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    if (button.disabled || !event.dataTransfer.files.length) return;
    picker.files = event.dataTransfer.files;
    button.focus();
  });
})();
