import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { calls, says, scripted, waits, type ScriptPart } from '@skein/ai/testing'
import { launchBrowser } from '../../../../../scripts/browser.ts'
import { createRuntime, type EmbeddedRuntime, defineAgent, definePrompt } from '@skein/runtime'
import { serve, type Serving } from '../../../src/index.ts'
import { note, paid, refund } from './chat-kit.ts'

const WORDS = Array.from({ length: 60 }, (_, index) => `word${index}`)

/** Long answers come with pauses, so that there is a middle. */
const model = scripted(({ messages }): ScriptPart | readonly ScriptPart[] => {
  const last = messages.at(-1)
  if (last?.type !== 'user') return says('That is done.')
  const [block] = last.content
  const text = block?.type === 'text' ? block.text : ''
  if (text.includes('refund')) return calls('refund', { amount: 5 })
  if (text.includes('note')) return calls('note', { text: 'milk' })
  if (text.includes('forever')) return [says('It begins. '), waits(Infinity)]
  return WORDS.flatMap((word) => [says(`${word} `), waits(40)])
})

const desk = defineAgent({
  name: 'desk',
  sideA: {
    prompt: definePrompt({ name: 'desk', prompt: 'Help.', model, tools: [note, refund] }),
  },
})

let browser: Browser
let runtime: EmbeddedRuntime
let serving: Serving
let script = ''

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
  script = bundled.outputFiles[0]!.text
  runtime = await createRuntime({ agents: [desk] })
  await runtime.start()
  serving = await serve(runtime, { port: 0, auth: 'none', before: servePage })
  browser = await launchBrowser()
  // The first start unpacks 200 MB.
}, 90_000)

afterAll(async () => {
  await browser?.close()
  await serving?.close({ graceMs: 0 })
  await runtime?.stop({ graceMs: 0 })
})

beforeEach(() => void paid.splice(0))

function servePage(request: Request): Response | undefined {
  const { pathname } = new URL(request.url)
  if (pathname === '/page.js')
    return new Response(script, { headers: { 'content-type': 'text/javascript' } })
  if (pathname !== '/') return undefined
  const html = '<!doctype html><title>Chat</title><div id="root"></div>'
  return new Response(`${html}<script type="module" src="/page.js"></script>`, {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      // The test itself asks the page with `eval`.
      'content-security-policy': "default-src 'self'; script-src 'self' 'unsafe-eval'",
    },
  })
}

async function open(chat: string): Promise<Page> {
  const page = await browser.newPage()
  await page.goto(`${serving.url}?chat=${chat}`)
  await page.waitForSelector('#send')
  return page
}

async function say(page: Page, text: string): Promise<void> {
  await page.fill('input[name=text]', text)
  await page.click('#send')
}

/** Texts of the assistant. */
const answers = (page: Page): Promise<string[]> =>
  page.$$eval('li[data-role=assistant]', (items) =>
    items.map((item) =>
      [...item.querySelectorAll('.text')].map((part) => part.textContent).join(''),
    ),
  )

const isReady = (page: Page): Promise<unknown> =>
  page.waitForFunction('document.querySelector("#status").textContent === "ready"')

test('the stock useChat streams word by word, and a reload in the middle loses and doubles nothing', async () => {
  const page = await open('reload')
  await say(page, 'tell me a lot')
  await page.waitForFunction('document.body.textContent.includes("word5 ")')
  const early = (await answers(page))[0]!
  expect(early).not.toContain('word59')
  expect(await page.textContent('#status')).toBe('streaming')
  const thread = (await runtime.threads.byClientId('default', 'reload'))!
  await page.reload()
  await page.waitForFunction('document.body.textContent.includes("word9 ")')
  expect((await runtime.threads.get(thread.id)).lifecycle).toBe('running')
  await page.waitForFunction('document.body.textContent.includes("word59 ")')
  await isReady(page)
  expect(await answers(page)).toEqual([WORDS.map((word) => `${word} `).join('')])
  expect(await page.$$('li')).toHaveLength(2)
  // Nothing runs any more: there is nothing to resume.
  await page.reload()
  await page.waitForSelector('li[data-role=assistant]')
  await isReady(page)
  expect(await answers(page)).toEqual([WORDS.map((word) => `${word} `).join('')])
  await page.close()
}, 60_000)

test('a tool call is shown', async () => {
  const page = await open('tool')
  expect(await page.textContent('#status')).toBe('ready')
  await say(page, 'note this')
  await page.waitForSelector('.tool[data-state=output-available]')
  expect(await page.textContent('.tool')).toBe('tool-note {"text":"milk"} Noted: milk')
  await isReady(page)
  expect(await answers(page)).toEqual(['That is done.'])
  expect(await page.textContent('#error')).toBe('')
  await page.close()
})

test('an approval: yes pays, no does not, and both after a reload', async () => {
  const page = await open('approval')
  await say(page, 'refund me')
  await page.click('text=Yes')
  await page.waitForSelector('.tool[data-state=output-available]')
  await isReady(page)
  expect(paid).toEqual([5])
  await say(page, 'refund me again')
  await page.waitForSelector('text=No')
  await page.reload()
  await page.click('text=No')
  await page.waitForSelector('.tool[data-state=output-denied]')
  await page.waitForFunction('document.querySelectorAll("li").length === 4')
  await isReady(page)
  expect(paid).toEqual([5])
  expect(await answers(page)).toEqual(['That is done.', 'That is done.'])
  await page.close()
})

test('stop ends the run on the server; closing the page does not', async () => {
  const page = await open('stop')
  await say(page, 'go on forever')
  await page.waitForFunction('document.body.textContent.includes("It begins.")')
  const { id } = (await runtime.threads.byClientId('default', 'stop'))!
  await page.close()
  expect((await runtime.threads.get(id)).lifecycle).toBe('running')
  const again = await open('stop')
  await again.waitForFunction('document.body.textContent.includes("It begins.")')
  await again.click('#stop')
  expect((await runtime.threads.settled(id)).outcome).toBe('stopped')
  await isReady(again)
  expect(await answers(again)).toEqual(['It begins. '])
  expect(await again.textContent('#error')).toBe('')
  await again.close()
})
