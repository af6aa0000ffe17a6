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

  const faultOf = (file) => {
    const accepted = picker.accept.split(",").some((end) => file.name.toLowerCase().endsWith(end));
    if (!accepted) return `This link accepts ${picker.accept.replaceAll(",", " or ")} files, not ${file.name}.`;
    if (!file.size) return "The file is empty.";
    if (file.size > max) return `The file is too large: it has ${file.size.toLocaleString("en")} bytes.`;
    if (file.size !== max && "exact" in form.dataset)
      return `This is another file than the announced one: it has ${file.size.toLocaleString("en")} bytes.`;
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
      document.getElementById("part").textContent = part < 1 ? `${Math.floor(100 * part)} %` : "Checking";
    });
    request.addEventListener("load", () => {
      rest(false);
      // The page says what became of the file, whether the form or this script has sent it.
      const shown = request.response?.getElementById("page");
      if (!shown) return complain("The server could not receive the file. Try again in a moment.");
      const again = shown.querySelector("#upload");
      if (again) return fault.replaceChildren(...shown.querySelector("#fault").childNodes);
      document.title = request.response.title;
      document.getElementById("page").replaceWith(shown);
      document.getElementById("main").focus();
    });
    request.addEventListener("error", () => {
      rest(false);
      complain("The connection was lost. Send the file again.");
    });
    rest(true);
    request.send(body);
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    fault.replaceChildren();
    const [file] = picker.files;
    const said = faultOf(file);
    if (said) complain(said);
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
