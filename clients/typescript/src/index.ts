/** A client of Muniment registries, for browsers and Node.js. */
export type { components, operations, paths } from "./contract.js";
export * from "./client.js";
export * from "./errors.js";
export type { Options } from "./transport.js";
export * from "./webhooks.js";
