// Talks to the host by JSON-RPC. Every value becomes a text of the page, never markup.
"use strict";
const view = document.getElementById("view");
const waiting = {};
let asked = 0, host = {}, input = {}, tool = "";
const note = (method, params = {}) => parent.postMessage({ jsonrpc: "2.0", method, params }, "*");
const ask = (method, params) => new Promise((resolve, reject) => {
  waiting[++asked] = [resolve, reject];
  parent.postMessage({ jsonrpc: "2.0", id: asked, method, params }, "*");
});
const el = (name, ...inner) => {
  const made = document.createElement(name);
  made.append(...inner.filter((each) => each !== undefined && each !== null && each !== ""));
  return made;
};
const classed = (name, made) => (made.className = name, made);
const button = (text, act, kind = "") => {
  const made = classed(kind, el("button", text));
  made.type = "button";
  made.addEventListener("click", act);
  return made;
};
const facts = (pairs) => el("dl", ...pairs.filter(([, each]) => each !== undefined && each !== null && each !== "")
  .flatMap(([name, each]) => [el("dt", name), el("dd", String(each))]));
const link = (text, url) => host.openLinks
  ? button(text, () => ask("ui/open-link", { url }).catch(() => view.append(el("p", url))))
  : classed("quiet", el("p", `${text}: ${url}`));
const answerOf = (result) => {
  if (result.structuredContent) return result.structuredContent;
  try { return JSON.parse(result.content[0].text) } catch { return {} }
};
const fault = ({ message, hint }) => [classed("bad", el("p", message ?? "The call failed.")), el("p", hint)];
// What a person decided here is told to the model, which did not see it.
const tell = (text) => host.updateModelContext
  && ask("ui/update-model-context", { content: [{ type: "text", text }] }).catch(() => {});
const about = (context = {}) => {
  if (context.theme) document.documentElement.style.colorScheme = context.theme;
  tool = context.toolInfo?.tool?.name ?? tool;
};
addEventListener("message", ({ source, data }) => {
  if (source !== parent || data?.jsonrpc !== "2.0") return;
  const { id, method, params } = data;
  if (!method) {
    const [resolve, reject] = waiting[id] ?? [];
    delete waiting[id];
    if (resolve) data.error ? reject(data.error) : resolve(data.result);
  } else if (method === "ui/notifications/tool-input") input = params.arguments ?? {};
  else if (method === "ui/notifications/tool-result") show(answerOf(params));
  else if (method === "ui/notifications/tool-cancelled") view.replaceChildren(el("p", "The call was cancelled."));
  else if (method === "ui/notifications/host-context-changed") about(params);
  else if (id !== undefined) parent.postMessage(["ping", "ui/resource-teardown"].includes(method)
    ? { jsonrpc: "2.0", id, result: {} }
    : { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } }, "*");
});
ask("ui/initialize", {
  protocolVersion: "2026-01-26",
  appInfo: { name: "muniment", version: "1" },
  appCapabilities: {},
}).then((told) => {
  host = told.hostCapabilities ?? {};
  about(told.hostContext);
  note("ui/notifications/initialized");
  new ResizeObserver(() => note("ui/notifications/size-changed", {
    width: Math.ceil(view.offsetWidth), height: Math.ceil(view.offsetHeight),
  })).observe(view);
});
