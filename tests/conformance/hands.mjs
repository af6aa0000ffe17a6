// Executes a report run through one client library, and prints what the user was asked and what progress came.
// node hands.mjs KIND URL RUN; SUITE_TOKEN is sent by header.
const [kind, url, runId] = process.argv.slice(2)
const info = { name: 'suite', version: '1' }
const requestInit = { headers: { Authorization: `Bearer ${process.env.SUITE_TOKEN}` } }
const seen = { asked: 0, confirmed: false, progress: [] }
let client

if (kind === 'sdk') {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
  client = new Client(info)
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
} else {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
  const capabilities = { elicitation: { form: {} } }
  const options = kind === 'client-auto' ? { capabilities, versionNegotiation: { mode: 'auto' } } : {}
  client = new Client(info, options)
  if (kind === 'client-auto')
    client.setRequestHandler('elicitation/create', async () => {
      seen.asked++
      return { action: 'accept', content: {} }
    })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
}

await client.listTools()
const execute = (more) => {
  const call = { name: 'execute_report_run', arguments: { runId, waitSeconds: 50, ...more } }
  const options = { onprogress: (note) => seen.progress.push(note.progress) }
  return kind === 'sdk' ? client.callTool(call, undefined, options) : client.callTool(call, options)
}
let result = await execute({})
if (result.structuredContent.error?.reason === 'confirmation_required') {
  seen.confirmed = true
  result = await execute({ confirm: result.structuredContent.error.confirm })
}
seen.state = result.structuredContent.data?.state ?? JSON.stringify(result)
await client.close()
console.log(JSON.stringify(seen))
process.exit(0)
