/** The public log of a registry: whether a proof shows that a document is in it (RFC 9162, c2sp.org/signed-note). */

/** A proof as the registry sends it; bytes are in base64. */
export interface LogProof {
  index: number;
  size: number;
  leaf: { kind: string | null; key: string | null; change: string | null; salt: string | null; digest: string | null };
  leafData: string;
  hashes: string[];
  checkpoint: string;
}

/** Return whether a response has the members of a proof. */
export function isLogProof(value: unknown): value is LogProof {
  const proof = value as Partial<LogProof> | null | undefined;
  return (
    Number.isSafeInteger(proof?.index) &&
    Number.isSafeInteger(proof?.size) &&
    typeof proof?.leaf === "object" &&
    proof.leaf !== null &&
    typeof proof.leafData === "string" &&
    typeof proof.checkpoint === "string" &&
    Array.isArray(proof.hashes) &&
    proof.hashes.length <= 64 &&
    proof.hashes.every((hash) => typeof hash === "string")
  );
}

// A server puts its address before the paths of its own pictures and summaries; the log has them without.
const OWN_ADDRESS = new RegExp(
  String.raw`(?<!\\)"(https?://[^/"\\]{1,300})(?=/pictures/[0-9a-f]{32}-(?:144|512)\.webp")` +
    String.raw`|(?<="url":)"(https?://[^/"\\]{1,300})(?=/companies/[^"/\\]+/assessments/[^"/\\]+")`,
  "g",
);
const MAX_ADDRESSES = 4;
const ED25519 = 1;
const COSIGNATURE = 4;
const TIMESTAMP_BYTES = 8;
const encoder = new TextEncoder();

/**
 * Return whether *proof* shows that the log has the document with this *body*.
 *
 * @param logKey the key that must have signed the checkpoint; without it, its signature is not verified.
 * @param witnesses the keys of witnesses that must have cosigned it.
 * @throws TypeError a key is malformed.
 */
export async function isLogged(
  kind: string,
  id: string,
  body: string,
  proof: LogProof,
  logKey?: string,
  witnesses: readonly string[] = [],
): Promise<boolean> {
  const { leaf } = proof;
  if (leaf.kind !== kind || leaf.key !== id || !leaf.digest || !(await digests(body)).includes(leaf.digest)) return false;
  const leafData = bytes(proof.leafData);
  if (hex(await leafHash(leaf, leaf.digest)) !== hex(leafData)) return false;
  const end = proof.checkpoint.lastIndexOf("\n\n");
  const text = proof.checkpoint.slice(0, Math.max(end, 0));
  const lines = text.split("\n");
  if (lines.length < 3 || lines[1] !== String(proof.size)) return false;
  const root = await rootOf(proof, leafData);
  if (!root || lines[2] !== base64(root)) return false;
  const signatures = proof.checkpoint.slice(end + 2);
  if (logKey && !(await isSigned(`${text}\n`, signatures, lines[0] ?? "", logKey))) return false;
  const cosigned = await Promise.all(witnesses.map((witness) => isCosigned(`${text}\n`, signatures, witness)));
  return cosigned.every((each) => each);
}

async function digests(body: string): Promise<string[]> {
  const addresses = new Set([...body.matchAll(OWN_ADDRESS)].map((match) => match[1] ?? match[2] ?? ""));
  const bodies = [body];
  for (const address of [...addresses].sort().slice(0, MAX_ADDRESSES)) {
    bodies.push(body.replace(OWN_ADDRESS, (all, picture, summary) => ((picture ?? summary) === address ? '"' : all)));
  }
  return Promise.all(bodies.map(async (each) => hex(await sha256(encoder.encode(each)))));
}

async function leafHash(leaf: LogProof["leaf"], digest: string): Promise<Uint8Array<ArrayBuffer>> {
  const parts = [encoder.encode("muniment leaf\n")];
  const members = [bytes(leaf.salt ?? ""), ...[leaf.kind, leaf.key, leaf.change].map((each) => encoder.encode(each ?? ""))];
  for (const part of [...members, Uint8Array.from(digest.match(/../g) ?? [], (pair) => parseInt(pair, 16))]) {
    const length = new Uint8Array(8);
    new DataView(length.buffer).setBigUint64(0, BigInt(part.length));
    parts.push(length, part);
  }
  return sha256(...parts);
}

/** Return the root to which the proof leads; null if it does not have the hashes that its place needs. */
async function rootOf(proof: LogProof, leafData: Uint8Array): Promise<Uint8Array<ArrayBuffer> | null> {
  if (proof.index >= proof.size) return null;
  const sides: boolean[] = [];
  let begin = 0;
  let end = proof.size;
  while (end - begin > 1) {
    let half = 1;
    while (half * 2 < end - begin) half *= 2;
    const middle = begin + half;
    const isRight = proof.index >= middle;
    sides.push(isRight);
    [begin, end] = isRight ? [middle, end] : [begin, middle];
  }
  if (sides.length !== proof.hashes.length) return null;
  let root = await sha256(Uint8Array.of(0), leafData);
  for (const [place, isRight] of sides.reverse().entries()) {
    const beside = bytes(proof.hashes[place] ?? "");
    root = isRight ? await sha256(Uint8Array.of(1), beside, root) : await sha256(Uint8Array.of(1), root, beside);
  }
  return root;
}

/** Return whether the key has signed, and is one of the log *origin*. */
async function isSigned(text: string, signatures: string, origin: string, logKey: string): Promise<boolean> {
  const key = await parsedKey(logKey, ED25519);
  const value = key.name === origin ? signatureOf(signatures, key) : null;
  return value !== null && isValid(key, value, text);
}

/** Return whether the witness has cosigned (c2sp.org/tlog-cosignature). */
async function isCosigned(text: string, signatures: string, witness: string): Promise<boolean> {
  const key = await parsedKey(witness, COSIGNATURE);
  const value = signatureOf(signatures, key);
  if (value === null || value.length < TIMESTAMP_BYTES) return false;
  const at = new DataView(value.buffer, value.byteOffset).getBigUint64(0);
  return isValid(key, value.slice(TIMESTAMP_BYTES), `cosignature/v1\ntime ${at}\n${text}`);
}

interface ParsedKey {
  name: string;
  id: string;
  bytes: Uint8Array<ArrayBuffer>;
}

async function parsedKey(text: string, algorithm: number): Promise<ParsedKey> {
  const [name = "", id = "", encoded = ""] = splitKey(text);
  const public_ = bytes(encoded);
  const keyId = (await sha256(encoder.encode(`${name}\n`), public_)).slice(0, 4);
  if (public_.length !== 33 || public_[0] !== algorithm || hex(keyId) !== id) {
    const whose = algorithm === ED25519 ? "log" : "witness";
    throw new TypeError(`The key of a ${whose} has the form name+id+key, as its operator publishes it.`);
  }
  return { name, id, bytes: public_.slice(1) };
}

/** Return what a key has made, without its id; null if it has signed nothing. */
function signatureOf(signatures: string, key: ParsedKey): Uint8Array<ArrayBuffer> | null {
  const start = `— ${key.name} `;
  for (const line of signatures.split("\n")) {
    if (!line.startsWith(start)) continue;
    const value = bytes(line.slice(start.length));
    if (hex(value.slice(0, 4)) === key.id) return value.slice(4);
  }
  return null;
}

async function isValid(key: ParsedKey, signature: Uint8Array<ArrayBuffer>, text: string): Promise<boolean> {
  const verifier = await crypto.subtle.importKey("raw", key.bytes, { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify({ name: "Ed25519" }, verifier, signature, encoder.encode(text));
}

/** Return the parts of a key; the last may have further plus signs, which are digits of base64. */
function splitKey(logKey: string): string[] {
  const [name = "", id = "", ...rest] = logKey.split("+");
  return [name, id, rest.join("+")];
}

async function sha256(...parts: Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
}

/** Return the bytes of a text in base64; none if it is malformed. */
function bytes(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

function base64(content: Uint8Array): string {
  return btoa(String.fromCharCode(...content));
}

function hex(content: Uint8Array): string {
  return Array.from(content, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
