// Forwards JSON-RPC from standard input to a tool server over Streamable HTTP, and its responses to standard output.
// Runs on Node.js 18 or newer and needs no packages. Usage: node bridge.mjs URL; MUNIMENT_TOKEN may hold a token.
const [url] = process.argv.slice(2);
const token = (process.env.MUNIMENT_TOKEN ?? "").trim();
let revision; // of the session, from the answer to initialize

const send = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const ascii = (text) =>
  /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?")
    ? text
    : `=?base64?${Buffer.from(text).toString("base64")}?=`;

function headersOf({ method, params }) {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  if (token) headers.authorization = `Bearer ${token.replace(/^Bearer\s+/i, "")}`;
  const named = params?._meta?.["io.modelcontextprotocol/protocolVersion"];
  if (named ?? revision) headers["mcp-protocol-version"] = named ?? revision;
  if (named) {
    headers["mcp-method"] = method;
    const name = params.name ?? params.uri;
    if (name) headers["mcp-name"] = ascii(name);
  }
  return headers;
}

async function* messagesOf(response) {
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("text/event-stream")) {
    if (!type.startsWith("application/json")) throw new Error(`status ${response.status}`);
    return yield await response.json();
  }
  let rest = "";
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + part).split(/\r?\n\r?\n/);
    rest = events.pop();
    for (const event of events) {
      const data = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
      if (data.length) yield JSON.parse(data.map((line) => line.slice(5).trimStart()).join("\n"));
    }
  }
}

async function forward(line) {
  let message;
  try {
    message = JSON.parse(line);
  } catch {
    return send({ jsonrpc: "2.0", id: null, error: { code: -32700, message: "Invalid JSON." } });
  }
  const fail = (text) =>
    message.id === undefined
      ? console.error(text)
      : send({ jsonrpc: "2.0", id: message.id, error: { code: -32000, message: text } });
  try {
    const response = await fetch(url, { method: "POST", headers: headersOf(message), body: line });
    if (response.status === 202) return;
    for await (const answer of messagesOf(response)) {
      if (answer.jsonrpc !== "2.0") return fail([answer.error?.message, answer.error?.hint].join(" "));
      if (message.method === "initialize" && answer.result) revision = answer.result.protocolVersion;
      send(answer);
    }
  } catch (error) {
    fail(`No answer from ${url}: ${error.cause?.message || error.message}`);
  }
}

// Not readline: it also ends lines at U+2028, which JSON allows inside strings.
let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (part) => {
  const lines = (rest + part).split("\n");
  rest = lines.pop();
  for (const line of lines) if (line.trim()) forward(line);
});
