// Goes through OAuth by itself with one client library: 401, metadata, registration, consent in the browser that
// reads standard error, code, call, and a renewal when the access token is refused. Prints what it saw as JSON.
// node oauth.mjs KIND URL
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'

const [kind, url] = process.argv.slice(2)
const info = { name: 'suite', version: '1' }
const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  kind === 'client'
    ? await import('@modelcontextprotocol/client')
    : {
        ...(await import('@modelcontextprotocol/sdk/client/index.js')),
        ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
        ...(await import('@modelcontextprotocol/sdk/client/auth.js')),
      }

let arrived
const answer = new Promise((resolve) => (arrived = resolve))
const server = createServer((request, response) => {
  const asked = new URL(request.url, 'http://127.0.0.1')
  response.setHeader('Content-Type', 'text/html')
  response.end('<!doctype html><title>Done</title><p>Back in the app.</p>')
  if (asked.pathname === '/callback') arrived(asked.searchParams)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const redirect = `http://127.0.0.1:${server.address().port}/callback`

const secrets = []
const state = randomBytes(16).toString('hex')
const kept = {}
const provider = {
  redirectUrl: redirect,
  clientMetadata: {
    client_name: `Suite Script (${kind})`,
    redirect_uris: [redirect],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  state: () => state,
  clientInformation: () => kept.client,
  saveClientInformation: (client) => (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => {
    secrets.push(tokens.access_token, tokens.refresh_token)
    kept.tokens = tokens
  },
  redirectToAuthorization: (address) => console.error(`open ${address}`),
  saveCodeVerifier: (verifier) => {
    secrets.push(verifier)
    kept.verifier = verifier
  },
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: (discovery) => (kept.discovery = discovery),
  discoveryState: () => kept.discovery,
}

async function connected(transport) {
  const client = new Client(info)
  await client.connect(transport)
  return client
}

const first = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider })
try {
  await connected(first)
  throw new Error('it connected without being asked who it is')
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error
}
const parameters = await answer
if (parameters.get('state') !== state) throw new Error('the answer has another state')
secrets.push(parameters.get('code'))
await first.finishAuth(kind === 'client' ? parameters : parameters.get('code'))

const client = await connected(new StreamableHTTPClientTransport(new URL(url), { authProvider: provider }))
const tools = (await client.listTools()).tools.map((tool) => tool.name)
const listed = await client.callTool({ name: 'list_my_companies', arguments: {} })
// As after an hour: what the client holds is refused, and it renews without asking anybody.
const before = kept.tokens
kept.tokens = { ...before, access_token: `${before.access_token.slice(0, -1)}-` }
const profile = await client.callTool({ name: 'get_my_profile', arguments: {} })
await client.close()
server.close()
const seen = {
  tools,
  first: listed.structuredContent.data[0]?.id,
  email: profile.structuredContent.data.email,
  iss: parameters.get('iss'),
  method: kept.client.token_endpoint_auth_method,
  renewed: kept.tokens.access_token !== before.access_token && kept.tokens.refresh_token !== before.refresh_token,
  secrets,
}
console.log(JSON.stringify(seen))
process.exit(0)
