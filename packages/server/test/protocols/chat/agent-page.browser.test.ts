import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { agent, AgentState } from '@skein/agents'
import { defer, tool } from '@skein/ai'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import { agentUIResponse, uiAnswers, type UIMessage } from '@skein/threads/ai-sdk'
import { launchBrowser } from '../../../../../scripts/browser.ts'

// The stock `useChat` of `@ai-sdk/react` in a browser, against a server of twenty lines without the runtime.

const refunds: number[] = []
let release = (): void => {}
const refund = tool({
  name: 'refund',
  description: 'Pays money back.',
  parameters: z.object({ amount: z.number() }),
  approval: ({ amount }) => defer({ kind: 'approval', request: { amount } }),
  run: ({ amount }) => {
    refunds.push(amount)
    return `Paid ${amount}.`
  },
})
const note = tool({
  name: 'note',
  description: 'Takes a note.',
  parameters: z.object({ text: z.string() }),
  run: async function* ({ text }) {
    yield 'half a note'
    await new Promise<void>((resolve) => (release = resolve))
    yield `Noted: ${text}`
  },
})
const desk = agent({
  model: scripted(({ messages }) => {
    const last = messages.at(-1)
    if (last?.type !== 'user') return says('That is done.')
    if (last.text.includes('refund')) return calls('refund', { amount: 5 })
    if (last.text.includes('note')) return calls('note', { text: 'milk' })
    return last.text.includes('fail') ? fails('the secret cause') : says('Hello.')
  }),
  tools: [refund, note],
})

const chats = new Map<string, AgentState>()
async function chat(request: Request): Promise<Response> {
  const { id, messages } = (await request.json()) as { id: string; messages: UIMessage[] }
  const state = chats.get(id) ?? AgentState.initial()
  const last = messages.at(-1)!
  const text = last.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const isNew = last.role === 'user'
  const run = isNew ? desk.stream(text, state) : desk.resumeStream(state, uiAnswers(messages))
  void run.result.then((result) => chats.set(id, result.state)).catch(() => {})
  return agentUIResponse(run, isNew ? {} : { messageId: last.id })
}

let browser: Browser
let server: Server
let url = ''

beforeAll(async () => {
  const bundled = await build({
    entryPoints: [fileURLToPath(new URL('page.jsx', import.meta.url))],
    bundle: true,
    write: false,
    format: 'esm',
    jsx: 'automatic',
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
  })
  const page =
    '<!doctype html><title>Chat</title><div id="root"></div><script type="module" src="/page.js"></script>'
  server = createServer(async (incoming, outgoing) => {
    if (incoming.method !== 'POST') {
      const isScript = incoming.url === '/page.js'
      if (!isScript && !incoming.url?.startsWith('/?')) return void outgoing.writeHead(404).end()
      outgoing.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8')
      return void outgoing.end(isScript ? bundled.outputFiles[0]!.text : page)
    }
    const body = await new Response(Readable.toWeb(incoming) as ReadableStream).text()
    const response = await chat(new Request('http://page/chat', { method: 'POST', body }))
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    Readable.fromWeb(response.body as never).pipe(outgoing)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  browser = await launchBrowser()
}, 90_000)

afterAll(async () => {
  await browser?.close()
  server?.closeAllConnections()
  server?.close()
})

async function ask(chatId: string, text: string): Promise<Page> {
  const page = await browser.newPage()
  await page.goto(`${url}?chat=${chatId}`)
  await page.waitForSelector('#send')
  await page.fill('input[name=text]', text)
  await page.click('#send')
  return page
}
const isReady = (page: Page): Promise<unknown> =>
  page.waitForFunction('document.querySelector("#status").textContent === "ready"')
const textOf = (page: Page): Promise<string | null> => page.textContent('li[data-role=assistant]')

test('text, and a tool whose progress is shown before its result', async () => {
  const hello = await ask('hello', 'hi')
  await hello.waitForFunction('document.body.textContent.includes("Hello.")')
  await isReady(hello)
  await hello.close()
  const page = await ask('note', 'note this')
  await page.waitForFunction('document.body.textContent.includes("half a note")')
  release()
  await page.waitForFunction('document.body.textContent.includes("That is done.")')
  await isReady(page)
  expect(await textOf(page)).toContain('Noted: milk')
  expect(await page.textContent('#error')).toBe('')
  expect(await page.$$('li')).toHaveLength(2)
  await page.close()
}, 60_000)

test('an approval: the run waits as a state, the answer pays once, in the same message', async () => {
  const page = await ask('approval', 'refund me')
  await page.waitForSelector('text=Yes')
  await expect.poll(() => chats.get('approval')?.interrupts.length).toBe(1)
  expect(refunds).toEqual([])
  await page.click('text=Yes')
  await page.waitForFunction('document.body.textContent.includes("That is done.")')
  await isReady(page)
  expect(refunds).toEqual([5])
  expect(await page.$$('li')).toHaveLength(2)
  await page.close()
}, 60_000)

test('a failed run is an error on the page, without its cause', async () => {
  const page = await ask('fail', 'fail please')
  await page.waitForFunction('document.querySelector("#error").textContent !== ""')
  expect(await page.textContent('#error')).toBe('The run failed.')
  await page.close()
}, 60_000)
