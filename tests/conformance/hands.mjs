// Executes a report run through one client library and applies with its report; prints what the user was asked and what
// progress came.
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
const call = (name, args) => {
  const options = { onprogress: (note) => seen.progress.push(note.progress) }
  const request = { name, arguments: args }
  return kind === 'sdk' ? client.callTool(request, undefined, options) : client.callTool(request, options)
}
const run = await call('execute_report_run', { runId, waitSeconds: 50 })
seen.state = run.structuredContent.data?.state ?? JSON.stringify(run)
let sent = await call('submit_application', { runId })
const confirm = sent.structuredContent.data?.confirmation?.confirm
if (confirm) {
  seen.confirmed = true
  sent = await call('submit_application', { runId, confirm })
}
seen.sent = sent.structuredContent.data?.state ?? JSON.stringify(sent)
await client.close()
console.log(JSON.stringify(seen))
process.exit(0)
