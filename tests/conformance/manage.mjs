// Lists the tools of the owner-scoped server through one client library, calls one, and prints what it saw as JSON.
// node manage.mjs KIND URL; with SUITE_TOKEN it sends that by header, without it mcp-remote signs in by itself.
const [kind, url] = process.argv.slice(2)
const info = { name: 'suite', version: '1' }
const token = process.env.SUITE_TOKEN
const requestInit = token ? { headers: { Authorization: `Bearer ${token}` } } : {}

async function connected() {
  if (kind === 'client') {
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
    const client = new Client(info)
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
    return client
  }
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
  const client = new Client(info)
  if (kind === 'sdk') {
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
    return client
  }
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js')
  const args = ['node_modules/mcp-remote/dist/proxy.js', url, '--allow-http', '--transport', 'http-only']
  if (token) args.push('--header', `Authorization: Bearer ${token}`)
  const env = { ...process.env }
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env, stderr: 'inherit' }), {
    timeout: 100000,
  })
  return client
}

const client = await connected()
const tools = (await client.listTools()).tools.map((tool) => tool.name)
const listed = await client.callTool({ name: 'list_my_companies', arguments: {} })
await client.close()
console.log(JSON.stringify({ tools, first: listed.structuredContent.data[0]?.id }))
process.exit(0)
