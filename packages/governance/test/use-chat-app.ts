/**
 * An application whose page is the real `useChat` of `@ai-sdk/react`, in a browser. The page is loaded anew
 * before each answer, and the server builds its tools anew for each request.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { convertToModelMessages, stepCountIs, streamText, type UIMessage } from 'ai'
import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from '../../../scripts/browser.ts'
import type { ApprovalRequest } from '../src/index.ts'
import { aiSdkScripted, type App, type Framework, governedAiSdk, type Outcome } from './apps.ts'
import type { Script, World } from './apps.ts'

export const useChatApp: Framework = {
  name: 'AI SDK, useChat in a browser',
  open: (world, script) => {
    const opened = openPage(world, script)
    return (): App => ({
      start: async () => {
        const page = await opened
        await page.fill('input[name=text]', 'Go.')
        await page.click('#send')
        return rest(page)
      },
      answer: async (waiting, decide) => {
        const page = await opened
        // A person may answer much later, on a page that was opened again.
        await page.reload()
        await page.waitForSelector('li[data-role=assistant]')
        for (const one of waiting) {
          const { wire } = one.action.args as { wire: string }
          const button = decide(one) ? 'Yes' : 'No'
          await page.click(`.tool:has-text("${wire}") >> text=${button}`)
        }
        return rest(page)
      },
    })
  },
}

/** Waits until the page neither sends nor receives, and reads what it shows. */
async function rest(page: Page): Promise<Outcome> {
  await page.waitForFunction(
    `document.querySelector('#status').textContent === 'ready' &&
      document.querySelector('.tool') !== null &&
      document.querySelector('.tool[data-state=approval-responded]') === null &&
      (document.querySelector('.tool[data-state=approval-requested]') !== null ||
        document.querySelector('li[data-role=assistant] .text') !== null)`,
  )
  const asked = await page.$$eval('.tool[data-state=approval-requested]', (parts) =>
    parts.map((part) => part.textContent ?? ''),
  )
  const waiting = asked.map((shown, index) => {
    const args: unknown = JSON.parse(/\{.*?\}/.exec(shown)![0])
    return { id: String(index), action: { args } } as ApprovalRequest
  })
  const texts = await page.$$eval('li[data-role=assistant] .text', (parts) =>
    parts.map((part) => part.textContent ?? ''),
  )
  return { waiting, text: waiting.length > 0 ? undefined : texts.join(' ') }
}

let browser: Promise<Browser> | undefined
let script: Promise<string> | undefined
const servers: Server[] = []

async function openPage(world: World, model: Script): Promise<Page> {
  browser ??= launchBrowser()
  const server = createServer((request, response) => {
    void serve(request, response, world, model).catch((error: unknown) => {
      response.destroy(error as Error)
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const page = await (await browser).newPage()
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  await page.waitForSelector('#send')
  return page
}

/** Closes the browser and the servers, with the answers that they still wait for. */
export async function closeUseChat(): Promise<void> {
  await (await browser)?.close()
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  world: World,
  model: Script,
): Promise<void> {
  const send = (type: string, body: string, status = 200): void => {
    response.writeHead(status, { 'content-type': type }).end(body)
  }
  const { method, url = '/' } = request
  if (method === 'POST') {
    const body = JSON.parse(await text(request)) as { messages: UIMessage[] }
    return answer(response, body.messages, world, model)
  }
  if (url === '/page.js') return send('text/javascript', await (script ??= bundlePage()))
  if (url.endsWith('/stream')) return send('text/plain', '', 204)
  if (url.startsWith('/agents/')) {
    return send('application/json', `{"messages":${world.saved ?? '[]'}}`)
  }
  const html = '<!doctype html><title>Chat</title><div id="root"></div>'
  send('text/html; charset=utf-8', `${html}<script type="module" src="/page.js"></script>`)
}

/** Answers as the AI SDK's own guide does, with governed tools. */
async function answer(
  response: ServerResponse,
  messages: UIMessage[],
  world: World,
  script: Script,
): Promise<void> {
  const tools = governedAiSdk(world)
  const result = streamText({
    model: aiSdkScripted(world, script),
    messages: await convertToModelMessages(messages, { tools }),
    tools,
    stopWhen: stepCountIs(10),
  })
  const { body, headers, status } = result.toUIMessageStreamResponse({
    originalMessages: messages,
    generateMessageId: () => 'answer',
    onFinish: ({ messages: all }) => void (world.saved = JSON.stringify(all)),
  })
  response.writeHead(status, Object.fromEntries(headers))
  Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]).pipe(response)
}

async function text(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  return body
}

/** The page that the runtime's own tests open. */
async function bundlePage(): Promise<string> {
  const page = new URL('../../server/test/protocols/chat/page.jsx', import.meta.url)
  const bundled = await build({
    entryPoints: [fileURLToPath(page)],
    bundle: true,
    write: false,
    format: 'esm',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
  })
  return bundled.outputFiles[0]!.text
}
