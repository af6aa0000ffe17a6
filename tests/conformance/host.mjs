// The official host of MCP Apps, bundled for a page: shows one view and remembers what it asked for.
import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge'

window.show = async ({ html, connect, tool, input, result, capabilities, theme }) => {
  const frame = document.createElement('iframe')
  frame.sandbox = 'allow-scripts'
  frame.title = 'view'
  document.querySelector('#app').replaceChildren(frame)
  const seen = (window.seen = { links: [], contexts: [], sizes: [], messages: [] })
  addEventListener('message', ({ source, data }) => source === frame.contentWindow && seen.messages.push(data))
  const bridge = new AppBridge(null, { name: 'suite', version: '1' }, capabilities, {
    hostContext: { theme, toolInfo: { tool } },
  })
  bridge.oncalltool = (params) => window.callTool(params)
  bridge.onopenlink = async ({ url }) => (seen.links.push(url), {})
  bridge.onupdatemodelcontext = async ({ content }) => (seen.contexts.push(content[0].text), {})
  bridge.onsizechange = (size) => {
    seen.sizes.push(size)
    frame.style.height = `${size.height}px`
  }
  const ready = new Promise((resolve) => (bridge.oninitialized = resolve))
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow))
  const inline = "'self' 'unsafe-inline'"
  const policy = `default-src 'none'; script-src ${inline}; style-src ${inline}; img-src 'self' data:; connect-src ${connect}`
  frame.srcdoc = `<meta http-equiv="Content-Security-Policy" content="${policy}">${html}`
  await ready
  await bridge.sendToolInput({ arguments: input })
  await bridge.sendToolResult(result)
  window.bridge = bridge
}
