function show({ data, error }) {
  if (!data?.url) return view.replaceChildren(...fault(error ?? {}));
  const picker = Object.assign(el("input"), { type: "file", id: "file" });
  const label = Object.assign(el("label", `Choose ${input.filename ?? "the file"}, or drop it here. `), { htmlFor: "file" });
  const bar = Object.assign(el("progress"), { max: 1, value: 0, hidden: true, ariaLabel: "Progress" });
  const said = el("div");
  const area = classed("drop", el("div", label, picker, bar));
  const say = (...inner) => said.replaceChildren(...inner);

  const send = (file) => new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", data.url);
    request.setRequestHeader("Content-Type", data.headers["Content-Type"]);
    request.upload.addEventListener("progress", (event) => { bar.value = event.loaded / event.total });
    request.addEventListener("load", () => {
      let answer = {};
      try { answer = JSON.parse(request.responseText) } catch { /* said below */ }
      request.status === 201 ? resolve() : reject(answer.error ?? { message: "The file was not received." });
    });
    // A host may forbid views to reach the registry; its page takes the file in any browser.
    request.addEventListener("error", () => reject({ isBlocked: true }));
    request.send(file);
  });

  const take = async (file) => {
    if (!file || picker.disabled) return;
    if (file.size > data.maxBytes) return say(...fault({ message: `The file is larger than ${data.maxBytes} bytes.` }));
    picker.disabled = true;
    bar.hidden = false;
    say(el("p", `Uploading ${file.name}`));
    try {
      await send(file);
      const found = host.serverTools
        ? answerOf(await ask("tools/call", { name: "complete_document_upload", arguments: { uploadId: data.uploadId } })) : {};
      if (found.error) throw found.error;
      area.remove();
      say(el("p", `${file.name} was uploaded.`));
      tell(found.data ? `The user uploaded ${file.name}; document ${found.data.documentId} is ${found.data.state}.`
        : `The user uploaded ${file.name}. Call complete_document_upload with uploadId ${data.uploadId}.`);
    } catch (failed) {
      picker.disabled = false;
      bar.hidden = true;
      if (failed.isBlocked) say(el("p", "This app could not reach the registry."), link("Upload in the browser", data.url));
      else say(...fault(failed));
    }
  };

  picker.addEventListener("change", () => take(picker.files[0]));
  for (const kind of ["dragenter", "dragover"]) area.addEventListener(kind, (event) => {
    event.preventDefault();
    area.classList.add("over");
  });
  for (const kind of ["dragleave", "drop"]) area.addEventListener(kind, () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
  view.replaceChildren(el("h1", "Upload"), area, said);
}
