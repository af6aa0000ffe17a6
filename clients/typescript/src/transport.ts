/** Requests with deadlines and repetitions. */
import { APIError, ConnectionFailedError, MalformedResponseError, type MunimentError, refusal, TimedOutError } from "./errors.js";

/** A CSV has at most 64 MB, an export file is as large as the registry. */
const MAX_BODY_BYTES = 2 ** 30;
const FIRST_PAUSE_MS = 500;
/** Statuses after which the same request may succeed. */
const REPEATED = new Set([429, 502, 503, 504]);
/** Of these, those by which the registry itself says that it did nothing. */
const REFUSED_UNDONE = new Set([429, 503]);

export interface Options {
  /** A personal access token, for `owner`. */
  token?: string;
  /** How long a response may take. */
  timeoutMs?: number;
  /** Requests in all, with the first. */
  attempts?: number;
  /** Longer pauses are not waited for: the error says how long the registry wants. */
  maxWaitMs?: number;
  /** Another `fetch`, for example with a proxy. */
  fetch?: (request: Request) => Promise<Response>;
}

/** What one request may do. */
export interface Manner {
  /** It changes nothing, so it may be repeated. */
  reads: boolean;
  /** How long the registry may take before it answers. */
  waitsMs?: number;
  /** The whole response must come in time. */
  hasDeadline?: boolean;
}

/** Send requests, as often as they may be repeated. */
export class Transport {
  readonly #timeoutMs: number;
  readonly #attempts: number;
  readonly #maxWaitMs: number;
  readonly #fetch: (request: Request) => Promise<Response>;

  constructor(options: Options) {
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#attempts = options.attempts ?? 4;
    this.#maxWaitMs = options.maxWaitMs ?? 60_000;
    this.#fetch = options.fetch ?? ((request) => globalThis.fetch(request));
  }

  /**
   * Return a successful response, whose body is complete.
   *
   * @throws APIError the registry refused it.
   * @throws ConnectionFailedError it got no complete response.
   */
  async send(request: Request, manner: Manner): Promise<Response> {
    for (let attempt = 0; ; attempt++) {
      let failure: MunimentError;
      try {
        const response = await this.#once(request.clone(), manner);
        if (response.ok) return response;
        failure = await problemOf(response);
      } catch (error) {
        if (!(error instanceof ConnectionFailedError)) throw error;
        failure = error;
      }
      const pause = this.#pause(attempt, failure, manner);
      if (pause === undefined) throw failure;
      await sleep(pause, request.signal);
    }
  }

  async #once(request: Request, manner: Manner): Promise<Response> {
    const ended = new AbortController();
    const late = new TimedOutError("The registry did not answer in time.");
    const timer = setTimeout(() => ended.abort(late), this.#timeoutMs + (manner.waitsMs ?? 0));
    try {
      const signal = AbortSignal.any([request.signal, ended.signal]);
      const response = await this.#fetch(new Request(request, { signal }));
      if (manner.hasDeadline === false) clearTimeout(timer);
      return await whole(response);
    } catch (error) {
      if (request.signal.aborted) throw request.signal.reason;
      if (ended.signal.aborted) throw late;
      if (error instanceof MalformedResponseError) throw error;
      throw new ConnectionFailedError(`The registry cannot be reached: ${String(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  #pause(attempt: number, failure: MunimentError, manner: Manner): number | undefined {
    if (attempt + 1 >= this.#attempts) return undefined;
    let wanted: number | undefined;
    if (failure instanceof APIError) {
      if (!(manner.reads ? REPEATED : REFUSED_UNDONE).has(failure.status)) return undefined;
      wanted = failure.retryAfterMs;
    } else if (!manner.reads) {
      return undefined; // it may have taken effect
    }
    if (wanted !== undefined) return wanted <= this.#maxWaitMs ? wanted : undefined;
    // Clients that failed together do not come back together.
    return Math.min(FIRST_PAUSE_MS * 2 ** attempt * (0.5 + Math.random() / 2), this.#maxWaitMs);
  }
}

async function whole(response: Response): Promise<Response> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MAX_BODY_BYTES) {
      await reader.cancel();
      throw new MalformedResponseError("The response is longer than any of a registry.");
    }
    parts.push(value);
  }
  const { status, statusText, headers } = response;
  const hasBody = status >= 200 && ![204, 205, 304].includes(status);
  return new Response(hasBody ? new Blob(parts) : null, { status, statusText, headers });
}

async function problemOf(response: Response): Promise<APIError> {
  const { status, headers } = response;
  const rest = { retryAfterMs: retryAfterMs(headers.get("retry-after")), requestId: headers.get("x-request-id") ?? "" };
  try {
    const { error } = JSON.parse(await response.text()) as { error: { code: string; message: string; hint?: string } };
    if (typeof error.message === "string") return refusal({ status, ...error, ...rest });
  } catch {
    // The error of a proxy has another form.
  }
  const code = status >= 500 ? "internal_error" : "bad_request";
  return refusal({ status, code, message: `The server answered with the status ${status}.`, ...rest });
}

/** Read Retry-After, which is seconds or a date (RFC 9110, section 10.2.3). */
export function retryAfterMs(value: string | null): number | undefined {
  if (!value) return undefined;
  if (/^[0-9]+$/.test(value)) return Number(value) * 1000;
  const moment = Date.parse(value);
  return Number.isNaN(moment) ? undefined : Math.max(0, moment - Date.now());
}

/** Wait, unless *signal* ends it. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const left = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", left);
      resolve();
    }, ms);
    signal?.addEventListener("abort", left, { once: true });
  });
}
