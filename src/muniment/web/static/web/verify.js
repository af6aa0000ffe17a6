// Verifies a document, its proof and a checkpoint by Web Crypto. It asks no server: what is entered stays in the page.
(() => {
  "use strict";
  const form = document.getElementById("verify");
  const outcome = document.getElementById("outcome");
  const words = form.dataset;
  const fields = {};
  for (const name of ["document", "proof", "checkpoint", "key", "witnesses"]) fields[name] = document.getElementById(name);
  const utf8 = new TextEncoder();
  const LARGEST_FILE = 64 << 20;
  // A server puts its address before the paths of its own pictures and summaries; the log has them without.
  const OWN =
    /(?<!\\)"(https?:\/\/[^/"\\]{1,300})(?=\/pictures\/[0-9a-f]{32}-(?:144|512)\.webp")|(?<="url":)"(https?:\/\/[^/"\\]{1,300})(?=\/companies\/[^"/\\]+\/assessments\/[^"/\\]+")/g;

  class Fault extends Error {}

  // The texts of the page have $1 and $2 for values.
  const said = (text, ...values) => text.replace(/\$(\d)/g, (_, place) => values[place - 1]);
  const number = (value) => value.toLocaleString(document.documentElement.lang);
  const joined = (...parts) => {
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let place = 0;
    for (const part of parts) {
      all.set(part, place);
      place += part.length;
    }
    return all;
  };
  const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const hex = (bytes) => Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
  const isEqual = (one, other) => hex(one) === hex(other);
  const decoded = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  const hash = (text) => {
    const bytes = decoded(text);
    if (bytes.length !== 32) throw new Fault(words.form);
    return bytes;
  };

  const leafOf = (leaf) => {
    const digest = leaf.digest ? Uint8Array.from(leaf.digest.match(/../g), (each) => parseInt(each, 16)) : new Uint8Array();
    const parts = [decoded(leaf.salt), utf8.encode(leaf.kind), utf8.encode(leaf.key), utf8.encode(leaf.change), digest];
    const measured = parts.map((part) => {
      const length = new Uint8Array(8);
      new DataView(length.buffer).setBigUint64(0, BigInt(part.length));
      return joined(length, part);
    });
    return sha256(joined(utf8.encode("muniment leaf\n"), ...measured));
  };

  // Returns whether what is beside each subtree on the way from the leaf to the root is right of it.
  const sidesOf = (index, size) => {
    const sides = [];
    let begin = 0n;
    let end = size;
    while (end - begin > 1n) {
      let half = 1n;
      while (half * 2n < end - begin) half *= 2n;
      const middle = begin + half;
      sides.push(index < middle);
      if (index < middle) end = middle;
      else begin = middle;
    }
    return sides.reverse();
  };

  const rootOf = async (data, index, size, hashes) => {
    const sides = sidesOf(index, size);
    if (sides.length !== hashes.length) return new Uint8Array();
    let root = await sha256(joined(Uint8Array.of(0), data));
    for (const [place, isRight] of sides.entries()) {
      root = await sha256(isRight ? joined(Uint8Array.of(1), root, hashes[place]) : joined(Uint8Array.of(1), hashes[place], root));
    }
    return root;
  };

  // The digests that the log may have of a document: as it was entered, without its address, or in the body of its own.
  const digestsOf = async (text) => {
    const line = text.replace(/\r?\n$/, "");
    const framework = line.match(/^\{"framework":(.*)\}$/s);
    const bodies = [text, line, `{"data":${line}}`];
    if (framework) bodies.push(`{"data":${framework[1]}}`);
    const digests = new Set();
    for (const body of bodies) {
      digests.add(hex(await sha256(utf8.encode(body))));
      const addresses = new Set(Array.from(body.matchAll(OWN), (match) => match[1] ?? match[2]));
      for (const address of [...addresses].slice(0, 4)) {
        const without = body.replace(OWN, (match, picture, summary) => ((picture ?? summary) === address ? '"' : match));
        digests.add(hex(await sha256(utf8.encode(without))));
      }
    }
    return digests;
  };

  const noteOf = (text) => {
    const note = text.replace(/\r\n/g, "\n").trimEnd() + "\n";
    const end = note.lastIndexOf("\n\n");
    const signed = note.slice(0, end + 1);
    const [origin, size, root] = signed.split("\n");
    if (end < 0 || !origin || !/^(0|[1-9]\d{0,18})$/.test(size ?? "") || !root) throw new Fault(words.note);
    const signatures = [];
    for (const line of note.slice(end + 2).trimEnd().split("\n")) {
      const match = line.match(/^— (\S+) ([A-Za-z0-9+/=]+)$/);
      if (!match) throw new Fault(words.note);
      signatures.push({ name: match[1], bytes: decoded(match[2]) });
    }
    return { signed, origin, size: BigInt(size), root: hash(root), signatures };
  };

  const OF_LOG = 1;
  const OF_WITNESS = 4;
  const TIMESTAMP_BYTES = 8;

  const keyOf = async (text, type) => {
    const match = text.trim().match(/^([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/);
    if (!match) throw new Fault(words.key);
    const bytes = decoded(match[3]);
    const id = (await sha256(joined(utf8.encode(`${match[1]}\n`), bytes))).slice(0, 4);
    if (bytes.length !== 33 || bytes[0] !== type || hex(id) !== match[2]) throw new Fault(words.key);
    return { name: match[1], id, bytes: bytes.slice(1) };
  };

  const signatureOf = (note, key) =>
    note.signatures.find(({ name, bytes }) => name === key.name && isEqual(bytes.slice(0, 4), key.id))?.bytes.slice(4);

  // Returns whether the key made the signature; null if this browser cannot tell.
  const isValid = async (key, signature, text) => {
    let verifier;
    try {
      verifier = await crypto.subtle.importKey("raw", key.bytes, { name: "Ed25519" }, false, ["verify"]);
    } catch {
      return null;
    }
    return crypto.subtle.verify({ name: "Ed25519" }, verifier, signature, utf8.encode(text));
  };

  const isSigned = async (note, key) => {
    const signature = note.origin === key.name && signatureOf(note, key);
    return signature ? isValid(key, signature, note.signed) : false;
  };

  // Returns what is to be said of each witness: whether it has cosigned, and when.
  const witnessed = async (note) => {
    const found = [];
    for (const line of fields.witnesses.value.split(/\s+/).filter(Boolean)) {
      const key = await keyOf(line, OF_WITNESS);
      const value = signatureOf(note, key);
      const isWhole = value && value.length > TIMESTAMP_BYTES;
      const at = isWhole ? new DataView(value.buffer).getBigUint64(0) : 0n;
      const text = `cosignature/v1\ntime ${at}\n${note.signed}`;
      const holds = isWhole ? await isValid(key, value.slice(TIMESTAMP_BYTES), text) : false;
      const day = new Date(Number(at) * 1000).toLocaleString(document.documentElement.lang);
      if (holds === null) found.push(["wait", said(words.cannot, key.name)]);
      else found.push(holds ? ["good", said(words.cosigned, key.name, day)] : ["bad", said(words.uncosigned, key.name)]);
    }
    return found;
  };

  const read = (text, fault) => {
    try {
      return JSON.parse(text).data;
    } catch {
      throw new Fault(fault);
    }
  };

  const findings = async () => {
    if (!window.crypto?.subtle) throw new Fault(words.insecure);
    if (!fields.document.value.trim() || !fields.proof.value.trim()) throw new Fault(words.empty);
    const proof = read(fields.proof.value, words.form);
    if (!proof?.leaf?.salt || typeof proof.leafData !== "string" || !Array.isArray(proof.hashes)) throw new Fault(words.form);
    const kept = fields.checkpoint.value.trim();
    const note = noteOf(kept ? fields.checkpoint.value : String(proof.checkpoint));
    const found = [];
    const { leaf } = proof;
    const data = hash(proof.leafData);
    const isDocument = leaf.digest && (await digestsOf(fields.document.value)).has(leaf.digest);
    const key = String(leaf.key);
    found.push(isDocument ? ["good", said(words.digest, leaf.kind, key)] : ["bad", said(words.another, leaf.kind, key)]);
    found.push(isEqual(await leafOf(leaf), data) ? ["good", words.leaf] : ["bad", words.forged]);
    const index = BigInt(proof.index);
    const size = BigInt(proof.size);
    if (size !== note.size) {
      found.push(["bad", said(words.size, number(size), number(note.size), note.size)]);
    } else {
      const root = index < size ? await rootOf(data, index, size, proof.hashes.map(hash)) : new Uint8Array();
      const included = said(words.included, number(index + 1n), number(size));
      found.push(isEqual(root, note.root) ? ["good", included] : ["bad", words.excluded]);
    }
    if (!fields.key.value.trim()) {
      found.push(["wait", words.keyless]);
    } else {
      const signed = await isSigned(note, await keyOf(fields.key.value, OF_LOG));
      if (signed === null) found.push(["wait", words.unable]);
      else found.push(signed ? ["good", words.signed] : ["bad", words.unsigned]);
    }
    const cosigners = await witnessed(note);
    found.push(...cosigners);
    // Witnesses show all readers the same history.
    if (!kept && !cosigners.length) found.push(["wait", words.own]);
    found.push(["wait", words.newest]);
    return found;
  };

  const element = (name, className, text = "") => {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text;
    return made;
  };

  const show = (tone, sentence, found = []) => {
    const notice = element("div", `notice ${tone}`);
    notice.append(element("div", "", sentence));
    const list = element("ul", "plain checks");
    for (const [kind, text] of found) {
      const item = element("li", "");
      const label = { good: words.good, bad: words.bad, wait: words.open }[kind];
      const told = element("span", "", ` ${text}`);
      told.dir = "auto";
      item.append(element("span", `pill ${kind}`, label), told);
      list.append(item);
    }
    outcome.replaceChildren(notice, ...(found.length ? [list] : []));
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const found = await findings();
      if (found.some(([tone]) => tone === "bad")) show("bad", words.failed, found);
      else if (found.some(([, text]) => text === words.signed)) show("good", words.held, found);
      else show("wait", words.covered, found);
    } catch (error) {
      show("bad", error instanceof Fault ? error.message : words.form);
    }
  });

  // A file is put where it belongs: a checkpoint is no JSON, and a proof has hashes.
  const place = async (files) => {
    for (const file of files) {
      if (file.size > LARGEST_FILE) continue;
      const text = await file.text();
      const isProof = text.startsWith("{") && text.includes('"leafData"');
      fields[text.startsWith("{") ? (isProof ? "proof" : "document") : "checkpoint"].value = text;
    }
  };
  document.getElementById("files").addEventListener("change", (event) => place(event.target.files));
  for (const kind of ["dragenter", "dragover"]) {
    form.addEventListener(kind, (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      form.classList.add("over");
    });
  }
  for (const kind of ["dragleave", "drop"]) form.addEventListener(kind, () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    place(event.dataTransfer.files);
  });
})();
