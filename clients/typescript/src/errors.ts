/** What goes wrong: one class for each reaction of a program. */

/** A request that failed. */
export class MunimentError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The registry could not be reached, or the connection broke. */
export class ConnectionFailedError extends MunimentError {}

/** The registry did not answer in time, or answered too slowly. */
export class TimedOutError extends ConnectionFailedError {}

/** The response is not what the contract describes: another server, a proxy's page, or a version beyond v1. */
export class MalformedResponseError extends MunimentError {}

/**
 * The change feed does not continue what was read before: the registry was restored from a backup, has lost changes in
 * a failover, no longer keeps changes that old, or its history was rewritten. Begin again from an export.
 */
export class HistoryChangedError extends MunimentError {}

/** What the registry said. */
export interface Problem {
  /** The HTTP status; that of the code for a tool of owners. */
  status: number;
  /** `bad_request`, `not_found`, `method_not_allowed` or `internal_error`. */
  code: string;
  message: string;
  /** How to resolve it. */
  hint?: string | undefined;
  /** How long to wait before the next attempt, if the registry says. */
  retryAfterMs?: number | undefined;
  /** Name it to the operator. */
  requestId?: string | undefined;
}

/** The registry refused a request. */
export class APIError extends MunimentError {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly retryAfterMs: number | undefined;
  readonly requestId: string;

  constructor(problem: Problem) {
    super(`${problem.message} ${problem.hint ?? ""}`.trim());
    this.status = problem.status;
    this.code = problem.code;
    this.hint = problem.hint ?? "";
    this.retryAfterMs = problem.retryAfterMs;
    this.requestId = problem.requestId ?? "";
  }
}

/** An argument has an invalid value; the message names it. */
export class BadRequestError extends APIError {}

/** The token is missing, unknown, expired or revoked. */
export class AuthenticationError extends APIError {}

/** The token lacks a scope, or the registry does not let pages of this origin use the tools of owners. */
export class ForbiddenError extends APIError {}

/** There is no such thing, or it is not yours. */
export class NotFoundError extends APIError {}

/** It was changed meanwhile: read it again. */
export class ConflictError extends APIError {}

/** The registry does not accept this much. */
export class TooLargeError extends APIError {}

/** Too many requests, also after the attempts that the client may make. */
export class RateLimitError extends APIError {}

/** The registry failed; `requestId` helps its operator. */
export class ServerError extends APIError {}

/** Not available now: it starts, is busy, or is being maintained. */
export class UnavailableError extends ServerError {}

const BY_STATUS: Record<number, typeof APIError> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  413: TooLargeError,
  429: RateLimitError,
  503: UnavailableError,
};

/** Return the error of a status. */
export function refusal(problem: Problem): APIError {
  const kind = BY_STATUS[problem.status] ?? (problem.status >= 500 ? ServerError : APIError);
  return new kind(problem);
}
