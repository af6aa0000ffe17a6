import createClient, { type Client as FetchClient } from "openapi-fetch";
import type { components, operations, paths } from "./contract.js";
import {
  BadRequestError,
  HistoryChangedError,
  MalformedResponseError,
  MunimentError,
  NotFoundError,
  refusal,
  TimedOutError,
} from "./errors.js";
import { isLogged, isLogProof, type LogProof } from "./log.js";
import { type components as ownerComponents, DATA, READING } from "./owner_tools.js";
import { type Options, sleep, Transport } from "./transport.js";

type Schemas = components["schemas"];
type Query<Name extends keyof operations> = NonNullable<operations[Name]["parameters"]["query"]>;
type Listing<Name extends keyof operations> = Omit<Query<Name>, "page" | "cursor" | "format" | "bom" | "delimiter">;
/** The tools of owners: their arguments and results. */
export type OwnerTools = ownerComponents["schemas"]["OwnerTools"];
export type Company = Schemas["Company"];
export type CompanyBundle = Schemas["CompanyBundle"];
export type Person = Schemas["Person"];
export type Framework = Schemas["Framework"];
export type Change = Schemas["Change"];
export type Export = Schemas["Export"];
export type Kind = Change["kind"];

/** A request can be ended at any time. */
export interface Ending {
  signal?: AbortSignal | undefined;
}

/** How far a program has read the change feed: store it, and continue from it. */
export interface Place {
  /** The sequence number of the last change. */
  after: number;
  /** The hash over the feed up to it, by which a registry with another history is noticed. */
  chain?: string | null | undefined;
  /** The feed that the number belongs to. */
  feedId?: string | undefined;
}

/** A CSV file, and what cut it; null if it is whole. */
export interface Csv {
  text: string;
  truncated: string | null;
}

/** The answer to a statement. */
export interface Rows<Row> {
  data: Row[];
  columns: string[];
  truncated: Schemas["QueryResult"]["truncated"];
  edition: number;
}

/** A document as it is published, or null if it is not public any more. */
export interface Entry {
  kind: Kind;
  id: string;
  document: object | null;
}

/** Where a mirror is stored. Documents come before the place: what is interrupted comes again. */
export interface Store {
  /** Return how far it is, undefined before it is complete. */
  place(): Promise<Place | undefined> | Place | undefined;
  /** Store *entries* as all that there is. */
  replace(entries: Entry[], place: Place): Promise<void> | void;
  /** Store changes, and the place after them. */
  apply(entries: Entry[], place: Place): Promise<void> | void;
}

/** Whether a document is the one that the registry publishes now, and whether its public log has that one. */
export interface Verification {
  isPublished: boolean;
  isCurrent: boolean;
  /** A proof shows that the log has the published document; with a key, its checkpoint is signed by that key. */
  isLogged: boolean;
  /** The signed note of the proof; keep it. Empty if the registry has no log. */
  checkpoint: string;
  /** Of the published document as JSON; empty if there is none. */
  sha256: string;
  edition: number;
}

/** A published document: the whole response, its data as JSON, and the edition. */
interface Published {
  body: string;
  text: string;
  edition: number;
}

const VERIFY_TRIES = 3;
const WAIT_S = 50;
/** A request for the next change that comes back sooner, and empty, was not held: the next one is not sent at once. */
const SHORT_MS = 1000;
const COLLECTIONS = { company: "companies", person: "people", framework: "frameworks" } as const;
const KINDS = Object.keys(COLLECTIONS) as Kind[];

/**
 * A client of one registry.
 *
 * Reads are tried again after broken connections and when the registry asks for it; what changes something only if the
 * registry says that it did nothing.
 */
export class Client {
  /** Every operation of the contract by its path; the methods of this class are made of it. */
  readonly api: FetchClient<paths>;
  readonly baseUrl: string;
  readonly #transport: Transport;
  readonly #token: string | undefined;

  /** @param baseUrl for example `https://registry.example`. */
  constructor(baseUrl: string, options: Options = {}) {
    this.baseUrl = baseUrl.replace(/\/+$/, "");
    this.#transport = new Transport(options);
    this.#token = options.token;
    this.api = createClient<paths>({
      baseUrl: this.baseUrl,
      querySerializer: written,
      fetch: (request: Request) => {
        const seconds = Number(new URL(request.url).searchParams.get("waitSeconds") ?? 0);
        return this.#transport.send(request, { reads: true, waitsMs: seconds * 1000 });
      },
    });
  }

  /** The tools of the account that the token belongs to. */
  get owner(): Owner {
    if (!this.#token) throw new TypeError("Pass a token: create one at /manage/tokens of the registry.");
    return new Owner(this.baseUrl, this.#token, this.#transport);
  }

  /** Return a page of companies. */
  async listCompanies(query: Query<"listCompanies"> = {}, { signal }: Ending = {}): Promise<Schemas["CompanyList"]> {
    return body(this.api.GET("/api/v1/companies", { params: { query }, ...ending(signal) }));
  }

  /** Iterate over all companies that match. */
  companies(query: Listing<"listCompanies"> = {}, ending: Ending = {}): AsyncGenerator<Company, void> {
    return byCursor((page) => this.listCompanies({ pageSize: 100, ...query, ...page }, ending));
  }

  /** Return a company with its distribution, proposals, positions and cap table. */
  async getCompany(slug: string, { signal }: Ending = {}): Promise<CompanyBundle> {
    const path = { slug };
    return (await body(this.api.GET("/api/v1/companies/{slug}", { params: { path }, ...ending(signal) }))).data;
  }

  /** Iterate over the token holders of a company. */
  async *capTable(slug: string, { signal }: Ending = {}): AsyncGenerator<Schemas["CapTableEntry"], void> {
    yield* byPage((page) => {
      const params = { path: { slug }, query: { pageSize: 100, page } };
      return body(this.api.GET("/api/v1/companies/{slug}/cap-table", { params, ...ending(signal) }));
    });
  }

  /** Return a page of people. */
  async listPeople(query: Query<"listPeople"> = {}, { signal }: Ending = {}): Promise<Schemas["PersonList"]> {
    return body(this.api.GET("/api/v1/people", { params: { query }, ...ending(signal) }));
  }

  /** Iterate over all people that match. */
  people(query: Listing<"listPeople"> = {}, ending: Ending = {}): AsyncGenerator<Person, void> {
    return byCursor((page) => this.listPeople({ pageSize: 100, ...query, ...page }, ending));
  }

  /** Return a person with their positions. */
  async getPerson(slug: string, { signal }: Ending = {}): Promise<Person> {
    return (await body(this.api.GET("/api/v1/people/{slug}", { params: { path: { slug } }, ...ending(signal) }))).data;
  }

  /** Return all frameworks that match. */
  async listFrameworks(query: Query<"listFrameworks"> = {}, { signal }: Ending = {}): Promise<Framework[]> {
    return (await body(this.api.GET("/api/v1/frameworks", { params: { query }, ...ending(signal) }))).data;
  }

  /** Return a framework. */
  async getFramework(frameworkId: string, { signal }: Ending = {}): Promise<Schemas["FrameworkDetail"]> {
    const params = { path: { frameworkId } };
    return (await body(this.api.GET("/api/v1/frameworks/{frameworkId}", { params, ...ending(signal) }))).data;
  }

  /** Iterate over the published scores of a framework. */
  async *scores(frameworkId: string, { signal }: Ending = {}): AsyncGenerator<Schemas["RankedScore"], void> {
    yield* byPage((page) => {
      const params = { path: { frameworkId }, query: { pageSize: 100, page } };
      return body(this.api.GET("/api/v1/frameworks/{frameworkId}/scores", { params, ...ending(signal) }));
    });
  }

  /** Find companies, people and frameworks. */
  async search(
    q: string,
    query: Omit<Query<"search">, "q"> = {},
    { signal }: Ending = {},
  ): Promise<Schemas["SearchResults"]> {
    return body(this.api.GET("/api/v1/search", { params: { query: { ...query, q } }, ...ending(signal) }));
  }

  /** Count the values of filters. */
  async getFacets(query: Query<"getFacets"> = {}, { signal }: Ending = {}): Promise<Schemas["Facets"]> {
    return body(this.api.GET("/api/v1/facets", { params: { query }, ...ending(signal) }));
  }

  /** Return the totals of the registry. */
  async getStats({ signal }: Ending = {}): Promise<Schemas["Stats"]> {
    return (await body(this.api.GET("/api/v1/stats", ending(signal)))).data;
  }

  /** Return the export files. */
  async listExports({ signal }: Ending = {}): Promise<Export[]> {
    return (await body(this.api.GET("/api/v1/exports", ending(signal)))).data;
  }

  /** Return the public tables with their columns. */
  async listTables({ signal }: Ending = {}): Promise<Schemas["TableList"]> {
    return body(this.api.GET("/api/v1/tables", ending(signal)));
  }

  /**
   * Return the answer to one statement in the SQL of SQLite about the tables of `listTables`.
   *
   * @param values parameters of the statement; `:city` is given by `city`.
   */
  async query<Row extends object = Record<string, string | number | null>>(
    sql: string,
    values: Record<string, string | number> = {},
    { signal }: Ending = {},
  ): Promise<Rows<Row>> {
    const answer = await this.#read("/api/v1/query", { ...values, sql }, signal);
    return (await parsed(answer)) as Rows<Row>;
  }

  /** Return all that a list finds as CSV; `truncated` says what cut it. */
  async csv<Name extends "companies" | "people" | "frameworks">(
    list: Name,
    query: Listing<{ companies: "listCompanies"; people: "listPeople"; frameworks: "listFrameworks" }[Name]>,
    { signal }: Ending = {},
  ): Promise<Csv> {
    return this.#csv(`/api/v1/${list}`, query, signal);
  }

  /** Return the answer to a statement as CSV; `truncated` says what cut it. */
  async queryCsv(sql: string, values: Record<string, string | number> = {}, { signal }: Ending = {}): Promise<Csv> {
    return this.#csv("/api/v1/query", { ...values, sql }, signal);
  }

  async #csv(path: string, query: object, signal?: AbortSignal): Promise<Csv> {
    const answer = await this.#read(path, { ...query, format: "csv" }, signal);
    if (!answer.headers.get("content-type")?.startsWith("text/csv")) {
      throw new MalformedResponseError("The response is no CSV.");
    }
    return { text: await answer.text(), truncated: answer.headers.get("x-muniment-truncated") };
  }

  /** Return a page of the change feed. */
  async listChanges(query: Query<"listChanges"> = {}, { signal }: Ending = {}): Promise<Schemas["ChangeList"]> {
    return body(this.api.GET("/api/v1/changes", { params: { query }, ...ending(signal) }));
  }

  /** Return the end of the change feed, to follow what comes from now on. */
  async head(options: Ending = {}): Promise<Place> {
    const edition = await this.#edition(options.signal);
    return placeAfter(await this.listChanges({ after: Math.max(edition - 1, 0), limit: 1000 }, options));
  }

  /**
   * Iterate over the changes after *place*, oldest first, and wait for the next one at the end, unless `follow` is false.
   * To continue later, store `{after: change.sequence, chain: change.chain}` of the last one.
   *
   * @throws HistoryChangedError the feed does not continue *place*: begin again from an export.
   */
  async *changes(
    place: Place = { after: 0 },
    options: { kind?: Kind[]; ids?: string[]; includeDocument?: boolean; follow?: boolean } & Ending = {},
  ): AsyncGenerator<Change, void> {
    const filters: Query<"listChanges"> = {};
    if (options.kind) filters.kind = options.kind.join(",");
    if (options.ids) filters.ids = commas(options.ids);
    if (options.includeDocument) filters.include = "document";
    for await (const page of this.#pagesOfChanges(place, filters, options.follow ?? true, options.signal)) {
      yield* page.data;
    }
  }

  async *#pagesOfChanges(
    place: Place,
    filters: Query<"listChanges">,
    follow: boolean,
    signal?: AbortSignal,
  ): AsyncGenerator<Schemas["ChangeList"], void> {
    for (;;) {
      const begun = Date.now();
      const query: Query<"listChanges"> = { ...filters, after: place.after };
      if (place.chain) query.chain = place.chain;
      if (follow) query.waitSeconds = WAIT_S;
      const page = await this.#changesAfter(query, signal);
      if (place.feedId && page.feedId && place.feedId !== page.feedId) {
        throw new HistoryChangedError("The registry has another change feed than the one that was read before.");
      }
      place = placeAfter(page);
      yield page;
      if (!follow && page.nextAfter >= (page.head ?? 0)) return;
      if (!page.data.length && follow && Date.now() - begun < SHORT_MS) await sleep(SHORT_MS, signal);
    }
  }

  async #changesAfter(query: Query<"listChanges">, signal?: AbortSignal): Promise<Schemas["ChangeList"]> {
    try {
      return await this.listChanges(query, { signal });
    } catch (error) {
      if (!(error instanceof BadRequestError)) throw error;
      // The code is that of any invalid value. If the same is accepted at the end of the feed, the place is it.
      const { chain: _, waitSeconds: __, ...valid } = query;
      await this.listChanges({ ...valid, after: await this.#edition(signal) }, { signal });
      throw new HistoryChangedError(error.message, { cause: error });
    }
  }

  async #edition(signal?: AbortSignal): Promise<number> {
    const answer = await this.#read("/api/v1/stats", {}, signal);
    const edition = answer.headers.get("x-muniment-edition") ?? "";
    if (!/^[0-9]+$/.test(edition)) throw new MalformedResponseError("The response names no edition.");
    return Number(edition);
  }

  /** Return an export file, after a check of its SHA-256. */
  async download(file: Export, { signal }: Ending = {}): Promise<Uint8Array<ArrayBuffer>> {
    const request = new Request(new URL(file.url, `${this.baseUrl}/`), ending(signal));
    const answer = await this.#transport.send(request, { reads: true, hasDeadline: false });
    const content = new Uint8Array(await answer.arrayBuffer());
    if ((await sha256(content)) !== file.sha256) {
      throw new MalformedResponseError(`${file.name} does not have the SHA-256 that the registry lists.`);
    }
    return content;
  }

  /**
   * Copy the registry to *store*, from an export and the changes since then; continue if it has a place.
   *
   * @throws HistoryChangedError the registry has another history than the copy, which is left as it is.
   */
  async mirror(store: Store, { follow = false, signal }: { follow?: boolean } & Ending = {}): Promise<Place> {
    let place = (await store.place()) ?? (await this.#copyAll(store, signal));
    for await (const page of this.#pagesOfChanges(place, { include: "document" }, follow, signal)) {
      const entries: Entry[] = [];
      for (const change of page.data) {
        // A document that is too large does not come along.
        const document = change.document === undefined ? await this.#document(change.kind, change.id, signal) : change.document;
        entries.push({ kind: change.kind, id: change.id, document });
      }
      place = placeAfter(page);
      await store.apply(entries, place);
    }
    return place;
  }

  async #copyAll(store: Store, signal?: AbortSignal): Promise<Place> {
    const files = newest(await this.listExports({ signal }));
    if (!files) return { after: 0 };
    const edition = files[0][1].edition;
    const page = await this.listChanges({ after: Math.max(edition - 1, 0), limit: 1 }, { signal });
    const chain = page.nextAfter === edition ? page.chain : undefined;
    const entries: Entry[] = [];
    for (const [kind, file] of files) {
      for (const line of (await unpacked(await this.download(file, { signal }))).split("\n")) {
        if (line) entries.push(entryOf(kind, line));
      }
    }
    const place = { after: edition, chain, feedId: page.feedId };
    await store.replace(entries, place);
    return place;
  }

  async #document(kind: Kind, id: string, signal?: AbortSignal): Promise<object | null> {
    const found = await this.#published(kind, id, signal);
    return found && (JSON.parse(found.text) as object);
  }

  /** Return a document as published, and the edition; null if there is none. */
  async #published(kind: Kind, id: string, signal?: AbortSignal): Promise<Published | null> {
    try {
      const answer = await this.#read(`/api/v1/${COLLECTIONS[kind]}/${encodeURIComponent(id)}`, {}, signal);
      const text = await answer.text();
      if (!text.startsWith('{"data":')) throw new MalformedResponseError("The response is no document.");
      const edition = Number(answer.headers.get("x-muniment-edition") ?? 0);
      return { body: text, text: text.slice(8, -1), edition };
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  /**
   * Compare a document that you hold, as JSON or decoded, with the one that the registry publishes now, and that one
   * with the public log.
   *
   * @param logKey the key of the log, which must have signed; without it, no signature is verified.
   * @param witnesses the keys of witnesses, all of which must have cosigned the checkpoint.
   */
  async verify(
    kind: Kind,
    id: string,
    document: string | object,
    { logKey, witnesses = [], signal }: Ending & { logKey?: string; witnesses?: readonly string[] } = {},
  ): Promise<Verification> {
    for (let attempt = 1; ; attempt += 1) {
      const found = await this.#published(kind, id, signal);
      if (!found) {
        const edition = await this.#edition(signal);
        return { isPublished: false, isCurrent: false, isLogged: false, checkpoint: "", sha256: "", edition };
      }
      const held = typeof document === "string" ? document : ordered(document);
      const published = typeof document === "string" ? found.text : ordered(JSON.parse(found.text));
      const isCurrent = held === published;
      const digest = await sha256(new TextEncoder().encode(found.text));
      const proof = await this.#proof(kind, id, new Set(witnesses).size, signal);
      const isInLog = proof !== null && (await isLogged(kind, id, found.body, proof, logKey, witnesses));
      // The document may have changed between the two requests.
      if (isInLog || !proof || attempt === VERIFY_TRIES) {
        const checkpoint = proof?.checkpoint ?? "";
        return { isPublished: true, isCurrent, isLogged: isInLog, checkpoint, sha256: digest, edition: found.edition };
      }
    }
  }

  async #proof(kind: Kind, id: string, cosignatures: number, signal?: AbortSignal): Promise<LogProof | null> {
    try {
      const asked = cosignatures ? { kind, id, cosignatures } : { kind, id };
      const answer = await this.#read("/api/v1/log/proof", asked, signal);
      const proof: unknown = ((await answer.json()) as { data?: unknown } | null)?.data;
      if (!isLogProof(proof)) throw new MalformedResponseError("The response is no proof of the log.");
      return proof;
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  /**
   * Check that the registry still has the history that led to *place*.
   *
   * @throws HistoryChangedError it has not.
   */
  async verifyHistory(place: Place, { signal }: Ending = {}): Promise<void> {
    await this.#pagesOfChanges(place, { limit: 1 }, false, signal).next();
  }

  #read(path: string, query: object, signal?: AbortSignal): Promise<Response> {
    const pairs = written(query as Record<string, unknown>);
    const url = `${this.baseUrl}${path}${pairs && `?${pairs}`}`;
    return this.#transport.send(new Request(url, ending(signal)), { reads: true });
  }
}

/** The tools of an account: each does what its name says, and returns what the registry answers. */
export class Owner {
  readonly #url: string;
  readonly #token: string;
  readonly #transport: Transport;

  constructor(baseUrl: string, token: string, transport: Transport) {
    this.#url = `${baseUrl}/api/manage/mcp`;
    this.#token = token;
    this.#transport = transport;
  }

  /** Call a tool. */
  async call<Name extends keyof OwnerTools>(
    name: Name,
    ...[given = {}, { signal } = {}]: Partial<OwnerTools[Name]["arguments"]> extends OwnerTools[Name]["arguments"]
      ? [given?: OwnerTools[Name]["arguments"], ending?: Ending]
      : [given: OwnerTools[Name]["arguments"], ending?: Ending]
  ): Promise<OwnerTools[Name]["result"]> {
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: given } };
    const request = new Request(this.#url, {
      method: "POST",
      body: JSON.stringify(call),
      headers: {
        Authorization: `Bearer ${this.#token}`,
        "Content-Type": "application/json",
        Accept: "application/json",
        "MCP-Protocol-Version": "2025-11-25",
      },
      ...ending(signal),
    });
    const waitsMs = Number((given as { waitSeconds?: number }).waitSeconds ?? 0) * 1000;
    const answer = await this.#transport.send(request, { reads: READING.has(name), waitsMs });
    const content = contentOf(await parsed(answer), answer);
    return (DATA.has(name) ? content["data"] : content) as OwnerTools[Name]["result"];
  }

  /** Upload a document of a company. */
  async upload(
    companySlug: string,
    filename: string,
    content: Uint8Array<ArrayBuffer> | Blob | string,
    { signal }: Ending = {},
  ): Promise<OwnerTools["complete_document_upload"]["result"]> {
    const bytes = new Uint8Array(await new Blob([content]).arrayBuffer());
    const asked = { companySlug, filename, sizeBytes: bytes.length, sha256: await sha256(bytes) };
    const link = await this.call("create_document_upload", asked, { signal });
    if (!link.url || !link.uploadId) throw new MalformedResponseError("The registry has named no address for the upload.");
    const put = { method: "PUT", body: bytes, headers: link.headers, ...ending(signal) };
    await this.#transport.send(new Request(new URL(link.url, this.#url), put), { reads: false });
    return this.call("complete_document_upload", { uploadId: link.uploadId }, { signal });
  }

  /**
   * Order a report, wait for it, and return it. Credits are charged if it succeeds.
   *
   * @throws RangeError it costs more than `maxCost`; nothing was paid.
   * @throws TimedOutError it still runs; the tool `list_my_runs` has it.
   */
  async assess(
    companySlug: string,
    frameworkId: string,
    options: { documentIds?: string[]; maxCost?: number; timeoutMs?: number } & Ending = {},
  ): Promise<OwnerTools["get_report"]["result"]> {
    const { signal, documentIds, maxCost = Infinity, timeoutMs = 3_600_000 } = options;
    const asked = { companySlug, frameworkId, idempotencyKey: crypto.randomUUID(), ...(documentIds && { documentIds }) };
    const run = await this.call("start_report_run", asked, { signal });
    if (!run.runId) throw new MalformedResponseError("The registry has named no run.");
    const { runId } = run;
    if (run.cost > maxCost) {
      await this.call("cancel_report_run", { runId }, { signal });
      throw new RangeError(`The report costs ${run.cost} credits.`);
    }
    const ends = Date.now() + timeoutMs;
    await this.call("execute_report_run", { runId, waitSeconds: WAIT_S }, { signal });
    let state = await this.call("get_report_run_status", { runId }, { signal });
    while (state.shouldPoll) {
      if (Date.now() > ends) throw new TimedOutError(`The run ${runId} is not finished yet.`);
      state = await this.call("get_report_run_status", { runId, waitSeconds: WAIT_S }, { signal });
    }
    if (state.state !== "succeeded") {
      throw new MunimentError(`The run ended as ${state.state}: ${state.error ?? "no reason is given"}.`);
    }
    return this.call("get_report", { runId, format: "full" }, { signal });
  }
}

interface ToolAnswer {
  result?: { isError?: boolean; structuredContent?: Record<string, unknown> };
  error?: { message: string };
}

/** Return what a tool answered. */
function contentOf(answer: unknown, response: Response): Record<string, unknown> {
  const { result, error } = (answer ?? {}) as ToolAnswer;
  if (error) throw refusal({ status: 400, code: "bad_request", message: error.message });
  const content = result?.structuredContent;
  if (!content) throw new MalformedResponseError("The response has neither a result nor an error.");
  if (result.isError) {
    const failed = content["error"] as { code: string; message: string; hint: string };
    if (typeof failed?.message !== "string") throw new MalformedResponseError("The response names no error.");
    const status = { not_found: 404, internal_error: 500 }[failed.code] ?? 400;
    throw refusal({ status, ...failed, requestId: response.headers.get("x-request-id") ?? "" });
  }
  return content;
}

async function body<T>(answer: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  try {
    const { data } = await answer;
    if (typeof data === "object" && data !== null) return data;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new MalformedResponseError("The response is not the JSON that was expected.");
}

async function parsed(answer: Response): Promise<unknown> {
  return body<unknown>(answer.json().then((data: unknown) => ({ data })));
}

async function* byCursor<Item>(
  read: (page: { cursor?: string }) => Promise<{ data: Item[]; pagination: { nextCursor?: string } }>,
): AsyncGenerator<Item, void> {
  let page = await read({});
  yield* page.data;
  while (page.pagination.nextCursor) {
    page = await read({ cursor: page.pagination.nextCursor });
    yield* page.data;
  }
}

async function* byPage<Item>(
  read: (page: number) => Promise<{ data: Item[]; nextPage: number | null }>,
): AsyncGenerator<Item, void> {
  for (let next: number | null = 1; next; ) {
    const page: { data: Item[]; nextPage: number | null } = await read(next);
    yield* page.data;
    next = page.nextPage;
  }
}

/** Write a query: lists repeat their parameter, those of ids, members and facets are joined. */
function written(query: Record<string, unknown>): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) {
      if (one !== undefined && one !== null) pairs.append(name, String(one));
    }
  }
  return pairs.toString();
}

/** Join values by commas; a comma within one is escaped. */
export function commas(values: string[]): string {
  return values.map((value) => value.replaceAll(",", "\\,")).join(",");
}

function ending(signal?: AbortSignal): { signal?: AbortSignal } {
  return signal ? { signal } : {};
}

function placeAfter(page: Schemas["ChangeList"]): Place {
  return { after: page.nextAfter, chain: page.chain, feedId: page.feedId };
}

/** Return the files of the latest edition that has all kinds. */
function newest(exports: Export[]): [[Kind, Export], ...[Kind, Export][]] | undefined {
  const editions = [...new Set(exports.map((file) => file.edition))].sort((one, other) => other - one);
  for (const edition of editions) {
    const files = KINDS.flatMap((kind): [Kind, Export][] => {
      const begins = `${COLLECTIONS[kind]}-`;
      const file = exports.find((each) => each.edition === edition && each.name.startsWith(begins) && each.name.endsWith(".jsonl.gz"));
      return file ? [[kind, file]] : [];
    });
    if (files.length === KINDS.length) return files as [[Kind, Export], ...[Kind, Export][]];
  }
  return undefined;
}

function entryOf(kind: Kind, line: string): Entry {
  try {
    const row = JSON.parse(line) as { company: { id: string }; slug: string; framework: { frameworkId: string } };
    if (kind === "company") return { kind, id: row.company.id, document: row };
    if (kind === "person") return { kind, id: row.slug, document: row };
    return { kind, id: row.framework.frameworkId, document: row.framework };
  } catch (error) {
    throw new MalformedResponseError(`An export has a row that is no ${kind}: ${String(error)}`);
  }
}

async function unpacked(content: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = new Blob([content]).stream().pipeThrough(new DecompressionStream("gzip"));
  try {
    return await new Response(stream).text();
  } catch (error) {
    throw new MalformedResponseError(`An export cannot be unpacked: ${String(error)}`);
  }
}

async function sha256(content: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", content);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Return JSON with the members of each object in one order. */
function ordered(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) => {
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}
