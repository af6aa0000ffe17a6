// Lists and calls every tool through one client library, and prints what it saw as JSON.
// node clients.mjs KIND URL PLAN, where PLAN is a file holding {tool: arguments}.
import { readFileSync } from 'node:fs'

const [kind, url, plan] = process.argv.slice(2)
const info = { name: 'suite', version: '1' }

async function connected() {
  if (kind === 'client' || kind === 'client-auto') {
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
    const options = kind === 'client-auto' ? { versionNegotiation: { mode: 'auto' } } : {}
    const client = new Client(info, options)
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    return client
  }
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
  const client = new Client(info)
  if (kind === 'sdk') {
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  } else {
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js')
    const args = ['node_modules/mcp-remote/dist/proxy.js', url, '--allow-http', '--transport', 'http-only']
    await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }))
  }
  return client
}

const client = await connected()
const seen = { server: client.getServerVersion()?.name, instructions: !!client.getInstructions(), tools: [], calls: {} }
seen.tools = (await client.listTools()).tools.map((tool) => tool.name)
for (const [name, calls] of Object.entries(JSON.parse(readFileSync(plan, 'utf8')))) {
  seen.calls[name] = []
  for (const given of calls) {
    // Both libraries check structuredContent against the tool's outputSchema and throw when it misses.
    const result = await client.callTool({ name, arguments: given })
    seen.calls[name].push({ isError: !!result.isError, keys: Object.keys(result.structuredContent) })
  }
}
seen.resource = (await client.readResource({ uri: 'registry://stats' })).contents[0].mimeType
seen.prompts = (await client.listPrompts()).prompts.length
await client.close()
console.log(JSON.stringify(seen))
process.exit(0)
