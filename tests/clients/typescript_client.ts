// The TypeScript client in Node, against a running product and against servers that fail.
// The environment has REGISTRY_URL and REGISTRY_TOKEN; run by test_typescript_client.py.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import {
  APIError,
  AuthenticationError,
  BadRequestError,
  type Change,
  Client,
  ConnectionFailedError,
  type Entry,
  HistoryChangedError,
  MalformedResponseError,
  NotFoundError,
  type Place,
  RateLimitError,
  ServerError,
  TimedOutError,
  UnavailableError,
  verifyWebhook,
  WebhookVerificationError,
} from "muniment-client";
import { FolderStore } from "muniment-client/node";

const URL_ = process.env["REGISTRY_URL"] ?? "";
const HEX = "5e".repeat(32);
const STATS = JSON.stringify({
  data: { total: 1, projectsRaising: 0, totalTreasury: "", founders: 0, frameworks: 0 },
});
const client = new Client(URL_, { token: process.env["REGISTRY_TOKEN"] ?? "" });

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

type Answer = [status: number, body: string | Buffer, headers?: Record<string, string>] | "silent" | "cut" | "drip" | "endless";

/** Run *work* against a server that gives the answers in order, and repeats the last one; return what was asked. */
async function answered(answers: Answer[], work: (url: string) => Promise<void>): Promise<string[]> {
  const asked: string[] = [];
  const timers: NodeJS.Timeout[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    asked.push(`${request.method} ${request.url}`);
    const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? "cut";
    request.resume();
    if (answer === "cut") {
      response.writeHead(200, { "Content-Length": "100" });
      response.write("{", () => response.destroy());
    } else if (answer === "drip" || answer === "endless") {
      response.writeHead(200);
      timers.push(setInterval(() => response.write(" "), 5));
    } else if (answer !== "silent") {
      const [status, body, headers] = answer;
      response.writeHead(status, { "Content-Type": "application/json", ...headers });
      response.end(body);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    timers.forEach(clearInterval);
    server.closeAllConnections();
    server.close();
  }
  return asked;
}

function problem(status: number, headers: Record<string, string> = {}): Answer {
  const error = { code: status < 500 ? "bad_request" : "internal_error", message: `Refused with ${status}.`, hint: "So." };
  return [status, JSON.stringify({ error }), headers];
}

test("all pages of every list are read", async () => {
  const stats = await client.getStats();
  const companies = await all(client.companies({ pageSize: 17 }));
  assert.equal(new Set(companies.map((company) => company.id)).size, stats.total);
  assert.equal((await all(client.people({ pageSize: 17 }))).length, stats.founders);
  const frameworks = await client.listFrameworks();
  assert.equal(frameworks.length, stats.frameworks);
  for (const { frameworkId, frameworkName } of frameworks) {
    assert.equal((await client.getFramework(frameworkId)).frameworkName, frameworkName);
    assert.ok(Array.isArray(await all(client.scores(frameworkId))));
  }
  for (const { id, name } of companies) assert.equal((await client.getCompany(id)).company.name, name);
  assert.deepEqual(await all(client.capTable("saltmarsh-commons")), (await client.getCompany("saltmarsh-commons")).capTable);
  assert.equal((await client.getPerson("ilsabet-corrowan")).name, "Ilsabet Corrowan");
});

test("filters are sent as the contract takes them", async () => {
  const types = (await all(client.companies({ type: ["DAO", "cooperative"], raising: false }))).map(({ type }) => type);
  assert.deepEqual(new Set(types), new Set(["DAO", "cooperative"]));
  const page = await client.listCompanies({ ids: "quillmere,nobody" });
  assert.deepEqual([page.data.map(({ id }) => id), page.unknownIds], [["quillmere"], ["nobody"]]);
  assert.ok((await client.getFacets({ list: "people", facets: "title" })).data["title"]?.values.length);
  assert.ok((await client.listTables()).data.length);
});

test("statements return rows and CSV", async () => {
  const sql = "SELECT slug, team_size FROM companies WHERE slug = :slug";
  const answer = await client.query<{ slug: string; team_size: number }>(sql, { slug: "quillmere" });
  assert.deepEqual(answer.data, [{ slug: "quillmere", team_size: 3 }]);
  assert.deepEqual((await client.query("SELECT a.slug FROM companies a, companies b")).truncated?.by, ["rows"]);
  assert.equal((await client.queryCsv(sql, { slug: "quillmere" })).text, "slug,team_size\r\nquillmere,3\r\n");
  const { text, truncated } = await client.csv("people", { fields: "name" });
  assert.deepEqual([text.split("\r\n")[0], truncated], ["slug,name", null]);
  await assert.rejects(client.query("SELECT nowhere FROM companies"), BadRequestError);
});

test("errors say code, hint and request", async () => {
  await assert.rejects(client.getCompany("quilmere"), (error: unknown) => {
    assert.ok(error instanceof NotFoundError);
    assert.deepEqual([error.code, error.name, error.status], ["not_found", "NotFoundError", 404]);
    assert.match(error.hint, /quillmere/);
    return error.requestId !== "";
  });
  await assert.rejects(client.listCompanies({ pageSize: 1000 }), BadRequestError);
});

test("changes are resumed, and another history is told from invalid arguments", async () => {
  const changes = await all(client.changes({ after: 0 }, { follow: false, includeDocument: true }));
  const middle = changes[20] as Change;
  const rest = await all(client.changes({ after: middle.sequence, chain: middle.chain }, { follow: false }));
  assert.equal(rest[0]?.sequence, middle.sequence + 1);
  assert.equal(rest.at(-1)?.sequence, changes.at(-1)?.sequence);
  assert.equal((await client.head()).after, changes.at(-1)?.sequence);
  const lost: Place[] = [{ after: 10, chain: HEX }, { after: 99_999 }, { after: 0, feedId: "another" }];
  for (const place of lost) {
    await assert.rejects(all(client.changes(place, { follow: false })), HistoryChangedError);
    await assert.rejects(client.verifyHistory(place), HistoryChangedError);
  }
  const ids = Array.from({ length: 101 }, (_, number) => `x${number}`);
  await assert.rejects(all(client.changes({ after: 0 }, { ids })), BadRequestError);
});

test("a change is heard of while waiting, and a wait is ended by its signal", async () => {
  const ended = new AbortController();
  const changes = client.changes(await client.head(), { ids: ["tarnwick-tidal"], signal: ended.signal });
  const first = changes.next();
  await client.owner.call("update_my_company", { slug: "tarnwick-tidal", changes: { description: "Heard of, in Node." } });
  assert.deepEqual(((await first).value as Change).fields, ["description"]);
  const second = changes.next();
  ended.abort(new Error("enough"));
  await assert.rejects(second, /enough/);
});

test("a mirror has every document, goes on, and refuses another history", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mirror-"));
  const store = new FolderStore(folder);
  await client.mirror(store);
  await client.owner.call("update_my_company", { slug: "tarnwick-tidal", changes: { description: "Mirrored." } });
  const place = await client.mirror(store);
  assert.deepEqual([place.after, await store.place()], [(await client.head()).after, { ...place }]);
  await client.verifyHistory(place);
  assert.equal((await all(store.documents("company"))).length, 60);
  const held = (await store.document("company", "tarnwick-tidal")) as { company: { description: string } };
  assert.equal(held.company.description, "Mirrored.");
  const verified = await client.verify("company", "tarnwick-tidal", held);
  assert.deepEqual([verified.isCurrent, verified.edition, verified.isLogged], [true, place.after, true]);
  const log = (await (await fetch(`${URL_}/api/v1/log`)).json()) as { data: { keys: string[] } };
  const logKey = log.data.keys[0] ?? "";
  const signed = await client.verify("company", "tarnwick-tidal", held, { logKey });
  assert.equal(signed.isLogged, true);
  assert.match(signed.checkpoint, /\n\n— /);
  const wrongKey = logKey.replace(/\+[0-9a-f]{8}\+/, "+00000000+");
  await assert.rejects(client.verify("company", "tarnwick-tidal", held, { logKey: wrongKey }), TypeError);
  assert.equal((await client.verify("company", "tarnwick-tidal", { ...held, capTable: [{ name: "Forged" }] })).isCurrent, false);
  assert.equal((await client.verify("company", "nobody", held)).isPublished, false);
  const text = await (await fetch(`${URL_}/api/v1/frameworks/plain-governance`)).text();
  assert.equal((await client.verify("framework", "plain-governance", text.slice(8, -1))).isCurrent, true);
  await writeFile(join(folder, "place.json"), JSON.stringify({ ...place, chain: HEX }));
  await assert.rejects(client.mirror(store), HistoryChangedError);
  await rm(folder, { recursive: true });
});

test("names of all kinds are files, and documents that are gone are removed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "names-"));
  const store = new FolderStore(folder);
  const ids = ["a/../../b", "..", "中国".repeat(60), "con*"];
  await store.apply(ids.map((id): Entry => ({ kind: "company", id, document: { id } })), { after: 1 });
  for (const id of ids) assert.deepEqual(await store.document("company", id), { id });
  assert.deepEqual([(await readdir(folder)).sort(), (await readdir(join(folder, "company"))).length], [["company", "place.json"], 4]);
  await store.apply([{ kind: "company", id: "..", document: null }], { after: 2 });
  assert.equal(await store.document("company", ".."), undefined);
  await store.replace([], { after: 3 });
  assert.deepEqual(await all(store.documents("company")), []);
  await rm(folder, { recursive: true });
});

test("an export that is not as listed is not stored, and without one the feed is read from its beginning", async () => {
  const packed = gzipSync("{}\n");
  const files = ["companies", "people", "frameworks"].map((name) => ({
    name: `${name}-7-aa.jsonl.gz`, url: `/exports/${name}`, latestUrl: "", rows: 1, bytes: 9, edition: 7, sha256: HEX, at: "",
  }));
  const page = { data: [], nextAfter: 7, chain: HEX, feedId: "f", head: 7 };
  const kept: Entry[] = [];
  const store = { place: () => undefined, replace: () => assert.fail(), apply: (entries: Entry[]) => void kept.push(...entries) };
  await answered([[200, JSON.stringify({ data: files })], [200, JSON.stringify(page)], [200, packed]], async (url) => {
    await assert.rejects(new Client(url).mirror(store), MalformedResponseError);
  });
  const change = { sequence: 1, kind: "company", id: "a", change: "updated", at: "", chain: HEX };
  const one = { data: [change], nextAfter: 1, chain: HEX, feedId: "f", head: 1 };
  const document = '{"data":{"company":{"id":"a"}}}';
  const asked = await answered([[200, '{"data":[]}'], [200, JSON.stringify(one)], [200, document]], async (url) => {
    assert.deepEqual(await new Client(url).mirror(store), { after: 1, chain: HEX, feedId: "f" });
  });
  assert.equal(asked[2], "GET /api/v1/companies/a");
  assert.deepEqual(kept, [{ kind: "company", id: "a", document: { company: { id: "a" } } }]);
});

test("an owner updates, uploads and is assessed", async () => {
  const { owner } = client;
  const changes = { description: "Tides." };
  const tried = await owner.call("update_my_company", { slug: "tarnwick-tidal", changes, dryRun: true });
  assert.deepEqual(tried.applied, ["description"]);
  assert.equal((await owner.call("list_my_companies")).data?.[0]?.id, "tarnwick-tidal");
  const document = await owner.upload("tarnwick-tidal", "audit.txt", "The reserves were audited in 2026.\n");
  assert.equal(document.state, "ready");
  await assert.rejects(owner.assess("tarnwick-tidal", "plain-governance", { maxCost: 0 }), RangeError);
  const report = await owner.assess("tarnwick-tidal", "plain-governance", { documentIds: [document.documentId ?? ""] });
  assert.ok(report.overall?.score);
  await assert.rejects(owner.call("get_my_company", { slug: "quillmere" }), NotFoundError);
  assert.throws(() => new Client(URL_).owner, /manage\/tokens/);
  await assert.rejects(new Client(URL_, { token: "mun_pat_wrong" }).owner.call("get_credits"), AuthenticationError);
});

const REPEATED: [Answer[], string][] = [
  [[problem(429, { "Retry-After": "0" })], "429"],
  [[problem(503, { "Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT" }), problem(503, { "Retry-After": "0" })], "503"],
  [[[502, "<html>", { "Retry-After": "0" }]], "a proxy's page"],
  [["cut"], "a broken connection"],
];
for (const [answers, name] of REPEATED) {
  test(`reads are repeated after ${name}`, async () => {
    const asked = await answered([...answers, [200, STATS]], async (url) => {
      assert.equal((await new Client(url).getStats()).total, 1);
    });
    assert.equal(asked.length, answers.length + 1);
  });
}

const REFUSED: [Answer, new (...given: never[]) => Error, number][] = [
  [problem(429, { "Retry-After": "61" }), RateLimitError, 1],
  [problem(503, { "Retry-After": "0" }), UnavailableError, 4],
  [problem(500), ServerError, 1],
  [problem(418), APIError, 1],
  [[200, "<html>"], MalformedResponseError, 1],
  [[200, "null"], MalformedResponseError, 1],
  [[200, Buffer.from("no gzip"), { "Content-Encoding": "gzip" }], ConnectionFailedError, 2],
];
for (const [answer, kind, times] of REFUSED) {
  test(`${String(answer[0])} ${String(answer[1]).slice(0, 8)} is ${kind.name} after ${times} attempts`, async () => {
    const asked = await answered([answer], async (url) => {
      await assert.rejects(new Client(url, times === 2 ? { attempts: 2 } : {}).getStats(), kind);
    });
    assert.equal(asked.length, times);
  });
}

test("what changes something is repeated only if it was refused undone", async () => {
  const cases: [Answer, number, number][] = [
    [problem(503, { "Retry-After": "0" }), 4, 4],
    [[502, "", { "Retry-After": "0" }], 1, 4],
    ["cut", 1, 2],
  ];
  for (const [answer, writes, reads] of cases) {
    const asked = await answered([answer], async (url) => {
      const { owner } = new Client(url, { token: "mun_pat_x", ...(answer === "cut" && { attempts: 2 }) });
      await assert.rejects(owner.call("submit_for_review", { slug: "x" }));
      await assert.rejects(owner.call("get_credits"));
    });
    assert.equal(asked.length, writes + reads);
  }
});

test("answers that no tool gives are errors", async () => {
  for (const body of ['{"error":{"code":-32600,"message":"No."}}', "{}", '{"result":{"isError":true,"structuredContent":{}}}']) {
    await answered([[200, body]], async (url) => {
      const { owner } = new Client(url, { token: "mun_pat_x" });
      await assert.rejects(owner.call("get_credits"), (error) => error instanceof BadRequestError || error instanceof MalformedResponseError);
    });
  }
});

for (const answer of ["silent", "drip"] as const) {
  test(`a ${answer} server is left in time, and at once by a signal`, async () => {
    await answered([answer], async (url) => {
      await assert.rejects(new Client(url, { timeoutMs: 50, attempts: 1 }).getStats(), TimedOutError);
      const ended = new AbortController();
      const asked = new Client(url).getStats({ signal: ended.signal });
      ended.abort(new Error("enough"));
      await assert.rejects(asked, /enough/);
    });
  });
}

test("a signal ends a pause", async () => {
  const ended = new AbortController();
  await answered([problem(429, { "Retry-After": "59" })], async (url) => {
    const fetch_ = async (request: Request) => {
      const answer = await fetch(request);
      setImmediate(() => setImmediate(() => ended.abort(new Error("enough"))));
      return answer;
    };
    await assert.rejects(new Client(url, { fetch: fetch_ }).getStats({ signal: ended.signal }), /enough/);
  });
});

test("a proof of something else shows nothing", async () => {
  type Data = { index: number; size: number; hashes: string[]; leaf: Record<string, unknown>; checkpoint: string };
  const changes: ((data: Data) => Partial<Data>)[] = [
    (data) => ({ index: data.index ^ 1 }),
    (data) => ({ index: data.size }),
    (data) => ({ size: data.size - 1 }),
    (data) => ({ hashes: data.hashes.slice(1) }),
    (data) => ({ leaf: { ...data.leaf, change: "state" } }),
    (data) => ({ leaf: { ...data.leaf, key: "quillmere" } }),
    (data) => ({ leaf: { ...data.leaf, digest: null } }),
    () => ({ checkpoint: "nothing" }),
  ];
  const held = await client.getCompany("tarnwick-tidal");
  for (const change of changes) {
    const altering = async (request: Request) => {
      const answer = await fetch(request);
      if (!request.url.includes("/log/proof")) return answer;
      const { data } = (await answer.json()) as { data: Data };
      return Response.json({ data: { ...data, ...change(data) } });
    };
    const found = await new Client(URL_, { fetch: altering }).verify("company", "tarnwick-tidal", held);
    assert.deepEqual([found.isCurrent, found.isLogged], [true, false], change.toString());
  }
  const witness = await newWitness("witness.example/w1");
  const cosigning = (altered: (line: string) => string) => async (request: Request) => {
    const address = new URL(request.url);
    const isProof = address.pathname.endsWith("/log/proof");
    if (isProof) assert.equal(address.searchParams.get("cosignatures"), "1");
    address.searchParams.delete("cosignatures"); // this registry has no witness
    const answer = await fetch(address, request);
    if (!isProof) return answer;
    const { data } = (await answer.json()) as { data: Data };
    const text = data.checkpoint.slice(0, data.checkpoint.lastIndexOf("\n\n") + 1);
    return Response.json({ data: { ...data, checkpoint: data.checkpoint + altered(await witness.cosign(text)) } });
  };
  const cosigned = (altered: (line: string) => string, key = witness.key) =>
    new Client(URL_, { fetch: cosigning(altered) }).verify("company", "tarnwick-tidal", held, { witnesses: [key] });
  assert.equal((await cosigned((line) => line)).isLogged, true);
  assert.equal((await cosigned(() => "")).isLogged, false);
  assert.equal((await cosigned((line) => line.replace(/AAAA/, "AAAB"))).isLogged, false);
  assert.equal((await cosigned((line) => line, (await newWitness("witness.example/w1")).key)).isLogged, false);
  await assert.rejects(cosigned((line) => line, "x"), TypeError);
  for (const body of ["null", "{}", '{"data": {"index": 1}}']) {
    const malformed = async (request: Request) => {
      const answer = await fetch(request);
      return request.url.includes("/log/proof") ? new Response(body) : answer;
    };
    const asking = new Client(URL_, { fetch: malformed }).verify("company", "tarnwick-tidal", held);
    await assert.rejects(asking, MalformedResponseError);
  }
});

test("a message of a webhook is verified", async () => {
  const secret = `whsec_${Buffer.from("secret".repeat(4)).toString("base64")}`;
  const body = '{"id":"evt_1","type":"listing.updated","timestamp":"","data":{"slug":"quillmere"}}';
  const signed = (content: string, key = "secret".repeat(4), at = Math.floor(Date.now() / 1000)) => ({
    "Webhook-Id": "evt_1",
    "webhook-timestamp": String(at),
    "Webhook-Signature": `v1,AAAA v1,${createHmac("sha256", key).update(`evt_1.${at}.${content}`).digest("base64")}`,
  });
  assert.deepEqual((await verifyWebhook(secret, signed(body), body)).data, { slug: "quillmere" });
  assert.ok(await verifyWebhook(secret, new Headers(signed(body)), Buffer.from(body)));
  const wrong: [Record<string, string>, string][] = [
    [signed(body, "other"), body], [signed(body), `${body} `], [signed(body, undefined, 1), body], [{}, body], [signed("[]"), "[]"],
    [{ ...signed(body), "Webhook-Id": "evt_2" }, body],
  ];
  for (const [headers, content] of wrong) {
    await assert.rejects(verifyWebhook(secret, headers, content), WebhookVerificationError);
  }
});

/** Return the key of a new witness, and what cosigns the text of a checkpoint for it. */
async function newWitness(name: string) {
  const pair = await crypto.subtle.generateKey({ name: "Ed25519" }, true, ["sign", "verify"]);
  if (!("publicKey" in pair)) throw new TypeError("no pair of keys");
  const encoder = new TextEncoder();
  const raw = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  const encoded = Buffer.concat([Uint8Array.of(4), raw]);
  const id = new Uint8Array(await crypto.subtle.digest("SHA-256", Buffer.concat([encoder.encode(`${name}\n`), encoded])));
  const keyId = Buffer.from(id.slice(0, 4));
  const cosign = async (text: string) => {
    const at = Buffer.alloc(8);
    at.writeBigUInt64BE(1_800_000_000n);
    const message = encoder.encode(`cosignature/v1\ntime 1800000000\n${text}`);
    const signature = new Uint8Array(await crypto.subtle.sign({ name: "Ed25519" }, pair.privateKey, message));
    return `— ${name} ${Buffer.concat([keyId, at, signature]).toString("base64")}\n`;
  };
  return { key: `${name}+${keyId.toString("hex")}+${encoded.toString("base64")}`, cosign };
}
