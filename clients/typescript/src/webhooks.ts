/** Verify messages of webhooks (Standard Webhooks, version 1). */
import { MunimentError } from "./errors.js";

/** The message is not from the registry, or too old: answer with status 400, and ignore it. */
export class WebhookVerificationError extends MunimentError {}

/** What happened. */
export interface WebhookEvent {
  /** The same in each attempt: remember it, and ignore what you have seen. */
  id: string;
  /** For example `listing.updated`. */
  type: string;
  timestamp: string;
  data: Record<string, unknown>;
}

type Headers_ = Headers | Record<string, string | string[] | undefined>;

/**
 * Return the event of a message, if it was signed with *secret*.
 *
 * @param body the bytes as they came, or as text.
 * @throws WebhookVerificationError the signature is wrong, or the time too far from now.
 */
export async function verifyWebhook(
  secret: string,
  headers: Headers_,
  body: Uint8Array | string,
  toleranceS = 300,
): Promise<WebhookEvent> {
  const given = headers instanceof Headers ? headers : new Headers(plain(headers));
  const id = given.get("webhook-id") ?? "";
  const sentAt = given.get("webhook-timestamp") ?? "";
  if (!/^[0-9]{1,15}$/.test(sentAt) || Math.abs(Date.now() / 1000 - Number(sentAt)) > toleranceS) {
    throw new WebhookVerificationError("The time of the message is missing, or too far from now.");
  }
  const content = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = new Uint8Array([...new TextEncoder().encode(`${id}.${sentAt}.`), ...content]);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes(secret.replace(/^whsec_/, "")), algorithm, false, ["verify"]);
  for (const signature of (given.get("webhook-signature") ?? "").split(" ")) {
    if (!/^v1,[A-Za-z0-9+/]{43}=$/.test(signature)) continue;
    if (await crypto.subtle.verify("HMAC", key, bytes(signature.slice(3)), signed)) return event(content);
  }
  throw new WebhookVerificationError("No signature of the message is right.");
}

function plain(headers: Record<string, string | string[] | undefined>): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, [value].flat().join(" ")]]));
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

function event(content: Uint8Array): WebhookEvent {
  try {
    const found = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content)) as WebhookEvent;
    if (typeof found.id === "string" && typeof found.type === "string" && typeof found.data === "object") return found;
  } catch {
    // It is no JSON.
  }
  throw new WebhookVerificationError("The message is no event.");
}
