import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const client = new Client({ name: "example", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL("http://127.0.0.1:42243/api/mcp")));
const answer = await client.callTool({
  name: "search",
  arguments: { query: "which companies are raising" },
});
console.log(answer.structuredContent);
await client.close();
