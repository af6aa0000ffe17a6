// Sends files to one-time links with a progress bar each, and goes on after a reload. The form works without it.
(() => {
  "use strict";
  const form = document.getElementById("upload");
  if (!form) return;
  const picker = form.querySelector("input[type=file]");
  const list = document.getElementById("sending");
  const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
  const KEY = "uploads";
  const AT_ONCE = 3;
  const TRIES = 6;
  const waiting = [];
  let running = 0;
  let kept = 0;

  // What is under way is remembered with its link, so that a reload loses nothing: the same file goes on.
  const remembered = () => {
    try {
      return JSON.parse(localStorage.getItem(KEY) || "[]").filter((each) => Date.parse(each.expiresAt) > Date.now());
    } catch {
      return [];
    }
  };
  const remember = (uploads) => {
    try {
      localStorage.setItem(KEY, JSON.stringify(uploads));
    } catch {
      // A browser that keeps nothing starts anew.
    }
  };
  const forget = (id) => remember(remembered().filter((each) => each.uploadId !== id));

  // Many files at once are more changes than an account may make: the rest waits as long as told.
  const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(Number(seconds) || 1, 60)));

  // What the server says of the file itself stays so: the same file is not offered again.
  const FINAL = [400, 413, 415, 422];
  const refused = (text, status) => {
    const fault = new Error(text);
    fault.final = FINAL.includes(status);
    fault.gone = fault.final || status === 404;
    return fault;
  };

  const ask = async (address, fields, tries = TRIES) => {
    const answer = await fetch(address, {
      method: "POST",
      headers: { Accept: "application/json", "X-CSRFToken": token },
      body: new URLSearchParams(fields),
      redirect: "error",
    });
    if (answer.status === 429 && tries > 1) {
      await pause(answer.headers.get("Retry-After"));
      return ask(address, fields, tries - 1);
    }
    const found = await answer.json();
    if (found.error) throw refused(`${found.error.message} ${found.error.hint}`, answer.status);
    return found.data;
  };

  const row = (name) => {
    const item = document.createElement("li");
    const label = document.createElement("div");
    const bar = document.createElement("progress");
    const words = document.createElement("span");
    const title = document.createElement("bdi");
    title.textContent = name;
    words.className = "quiet small";
    words.textContent = form.dataset.waiting;
    bar.max = 1;
    bar.value = 0;
    bar.setAttribute("aria-label", name);
    label.append(title, " ", words);
    item.append(label, bar);
    list.append(item);
    return {
      say: (text) => (words.textContent = text),
      fill: (part) => (bar.value = part),
      fail: (text, again) => {
        bar.remove();
        item.className = "notice bad";
        words.textContent = text;
        if (!again) return;
        const button = document.createElement("button");
        button.type = "button";
        button.className = "button slim";
        button.textContent = form.dataset.again;
        button.addEventListener("click", () => {
          item.remove();
          again();
        });
        item.append(" ", button);
      },
    };
  };

  const put = (file, upload, shown, tries = TRIES) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("PUT", new URL(upload.url).pathname);
      request.setRequestHeader("Content-Type", upload.headers["Content-Type"]);
      request.upload.addEventListener("progress", (event) => {
        shown.fill(event.loaded / file.size);
        shown.say(`${Math.floor((100 * event.loaded) / file.size)} %`);
      });
      request.addEventListener("load", () => {
        if (request.status === 201) return resolve();
        if (request.status === 429 && tries > 1) {
          const again = () => put(file, upload, shown, tries - 1);
          return pause(request.getResponseHeader("Retry-After")).then(again).then(resolve, reject);
        }
        let said = form.dataset.rejected;
        try {
          const { error } = JSON.parse(request.responseText);
          said = `${error.message} ${error.hint}`;
        } catch {
          // The sentence above has to do.
        }
        reject(refused(said, request.status));
      });
      request.addEventListener("error", () => reject(new Error(form.dataset.lost)));
      request.send(file);
    });

  const send = async (file, company) => {
    const shown = row(file.name);
    let upload = remembered().find(
      (each) => each.name === file.name && each.size === file.size && each.company === company,
    );
    try {
      if (file.size > Number(form.dataset.max)) throw refused(form.dataset.large, 413);
      if (!upload) {
        const given = await ask("/manage/documents/begin", { company, filename: file.name, size: file.size, type: "" });
        upload = { ...given, name: file.name, size: file.size, company };
        remember([...remembered(), upload]);
      }
      shown.say("0 %");
      await put(file, upload, shown);
      shown.say(form.dataset.checking);
      await ask(`/manage/documents/${upload.uploadId}/complete`, {});
      forget(upload.uploadId);
      shown.fill(1);
      shown.say(form.dataset.uploaded);
      kept += 1;
    } catch (fault) {
      if (fault.gone && upload) forget(upload.uploadId);
      shown.fail(fault.message, fault.final ? null : () => enqueue([file]));
    }
  };

  const turn = () => {
    while (running < AT_ONCE && waiting.length) {
      running += 1;
      const [file, company] = waiting.shift();
      send(file, company).finally(() => {
        running -= 1;
        turn();
        if (!running && !waiting.length && kept && !list.querySelector(".bad")) location.reload();
      });
    }
  };
  const enqueue = (files) => {
    for (const file of files) waiting.push([file, form.elements.company.value]);
    turn();
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    enqueue(picker.files);
    picker.value = "";
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
    enqueue(event.dataTransfer.files);
  });

  // After a reload: what has arrived is completed; for what has not, the same file is asked for.
  (async () => {
    let completed = false;
    for (const upload of remembered()) {
      const state = document.querySelector(`[data-document="${CSS.escape(upload.uploadId)}"]`)?.dataset.state;
      if (state === "pending") {
        row(upload.name).say(form.dataset.resume);
      } else {
        forget(upload.uploadId);
        if (state === "uploaded") {
          try {
            await ask(`/manage/documents/${upload.uploadId}/complete`, {});
            completed = true;
          } catch (fault) {
            row(upload.name).fail(fault.message);
          }
        }
      }
    }
    if (completed) location.reload();
  })();
})();
