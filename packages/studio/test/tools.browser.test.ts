import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { llm, tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { defineAgent, definePrompt, defineTool } from '@skein/runtime'
import { inspector } from '@skein/server/inspector'
import { z } from 'zod'
import { root } from '../../../scripts/workspace.ts'
import { pagesOf, withBrowser, withStudio } from './studio-kit.ts'

withBrowser()

const timeout = 60_000
const HOSTILE = '<img src=x onerror=alert(1)> \u202egnp.exe\u202c \u001b[2J'

/** The name of the option that the screen reader is at. */
async function activeOption(page: Page): Promise<string> {
  const box = page.getByRole('combobox', { name: 'Search and commands' })
  const id = await box.getAttribute('aria-activedescendant')
  return page.locator(`[id="${id}"]`).innerText()
}

test(
  'the palette goes to threads, agents and screens and runs commands, by keyboard alone',
  async () => {
    await withStudio({}, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'support', title: 'The brass lamp' })
      const page = await open('/agents')
      await page.getByText('Support desk', { exact: true }).waitFor()
      const key = page.getByRole('button', { name: 'Keys' })
      await key.focus()
      await page.keyboard.press('Control+k')
      const box = page.getByRole('combobox', { name: 'Search and commands' })
      await expect.poll(() => box.evaluate((one) => one === document.activeElement)).toBe(true)
      expect(await activeOption(page)).toContain('Threads')
      await page.keyboard.press('ArrowDown')
      expect(await activeOption(page)).toContain('Inbox')
      await page.keyboard.press('ArrowUp')
      await page.keyboard.press('ArrowUp') // round from the first to the last
      expect(await activeOption(page)).toContain('The brass lamp')
      await page.keyboard.type('brass support')
      await expect.poll(() => page.getByRole('option').count()).toBe(1)
      await page.getByText('1 result', { exact: true }).waitFor()
      await page.keyboard.press('Escape')
      await box.waitFor({ state: 'detached' })
      expect(await key.evaluate((one) => one === document.activeElement)).toBe(true)

      await page.keyboard.press('Control+k')
      await page.keyboard.type('lamp')
      await expect.poll(() => activeOption(page)).toContain('The brass lamp')
      await page.keyboard.press('Enter')
      await page.waitForURL(`**/threads/${id}`)
      // What the arrows have chosen is what Enter does.
      await page.keyboard.press('Control+k')
      await page.keyboard.press('ArrowDown')
      expect(await activeOption(page)).toContain('Inbox')
      await page.keyboard.press('Enter')
      await page.waitForURL('**/inbox')
      await page.goBack()
      await page.waitForURL(`**/threads/${id}`)
      // It works while one types, and what a screen's keys do is a command; decisions are not.
      await page
        .getByRole('textbox', { name: /message/i })
        .first()
        .focus()
      await page.keyboard.press('Control+k')
      await page.keyboard.type('timeline')
      await page.keyboard.press('Enter')
      await page.waitForURL('**view=timeline**')
      await page.keyboard.press('Control+k')
      await page.keyboard.type('approve with changes')
      await page.getByText('No results for “approve with changes”.').waitFor()
      await page.keyboard.press('Enter') // nothing to choose, nothing happens
      await box.waitFor()
      await page.keyboard.press('Control+k')
      await box.waitFor({ state: 'detached' })
      await page.keyboard.press('Control+k')
      await page.keyboard.type('theme: dark')
      await page.keyboard.press('Enter')
      await expect
        .poll(() => page.evaluate(() => document.documentElement.dataset['theme']))
        .toBe('dark')
    })
  },
  timeout,
)

test(
  'an operation is tried with the rights of the person; hostile answers are only shown',
  async () => {
    await withStudio({}, async ({ open, runtime, url }) => {
      const { id } = await runtime.threads.create({ agent: 'support', title: HOSTILE.slice(0, 40) })
      await runtime.threads.values.set(id, 'note', HOSTILE)
      const page = await open('/api')
      await page.getByRole('searchbox', { name: 'Search operations' }).fill('getvalue')
      await page
        .getByRole('link', { name: /values/ })
        .first()
        .click()
      const send = page.getByRole('button', { name: 'Send GET' })
      expect(await send.isDisabled()).toBe(true)
      await page.getByText('Fill in threadId and key first.').waitFor()
      await page.getByLabel(/^threadId/).fill(id)
      await page.getByLabel(/^key/).fill("no'te/../x y")
      const curl = page.locator('.cmd code').first()
      // What is pasted into a shell is one word, and no path climbs.
      await expect
        .poll(() => curl.innerText())
        .toBe(`curl '${url}/threads/${id}/values/no'\\''te/../x%20y'`)
      await page.getByLabel(/^key/).fill('note')
      await send.click()
      await page.locator('.api-result').getByText('200', { exact: true }).waitFor()
      const shown = await page.getByLabel('Answer', { exact: true }).innerText()
      expect(shown).toContain('\\u202egnp.exe\\u202c')
      expect(shown).toContain('<img src=x')
      expect(await page.locator('.api-result img').count()).toBe(0)

      await page.goto(`${url}/studio/api/createThread`)
      const body = page.getByRole('textbox', { name: /^Body/ })
      await body.fill('{"agent":"nobody"}')
      await page.getByRole('button', { name: 'Send POST' }).click()
      await page.getByText('AGENT_NOT_FOUND').last().waitFor()
      await body.fill('{"agent":"support","title":"From the API page"}')
      await page.getByRole('button', { name: 'Send POST' }).click()
      await page.locator('.api-result').getByText('201').waitFor()
      expect(await runtime.threads.list({ search: 'From the API page' })).toHaveLength(1)
      // A stream is read until the person stops it.
      await page.goto(`${url}/studio/api/streamThread`)
      await page.getByLabel(/^threadId/).fill(id)
      await page.getByRole('button', { name: 'Send GET' }).click()
      await page.getByText('thread_created').waitFor()
      await page.getByRole('button', { name: 'Stop' }).click()
      await expect.poll(() => page.getByRole('button', { name: 'Send GET' }).isEnabled()).toBe(true)
    })
  },
  timeout,
)

test(
  'without a scope nothing is sent, and the page says which one is missing',
  async () => {
    const keys = [
      { key: 'a-key-that-only-reads', tenant: 'acme', name: 'rea', scopes: ['threads:read'] },
    ] as const
    await withStudio({ serve: { auth: { keys }, prefix: '/desk' } }, async ({ open }) => {
      const page = await open('/api/createThread', { prefix: '/desk' })
      await page.getByLabel('Key').fill(keys[0].key)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('You do not have the scope threads:write.').waitFor()
      expect(await page.getByRole('button', { name: 'Send POST' }).isDisabled()).toBe(true)
      // The prefix is that of the address.
      expect(await page.locator('.cmd code').first().innerText()).toContain('/desk/threads')
      expect(await page.locator('.cmd code').first().innerText()).not.toContain('/desk/desk')
      // This server needs a key; the server of the other tests does not.
      expect(await page.locator('.cmd code').first().innerText()).toContain('Bearer $SKEIN_KEY')
    })
  },
  timeout,
)

test(
  'a thread is exported in three forms without secrets, and imported and opened again',
  async () => {
    await withStudio({}, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({
        agent: 'support',
        secrets: { TOKEN: 'canary-of-a-secret' },
      })
      await runtime.threads.run(id, 'Where is order O-8? (canary-of-a-secret)')
      const page = await open(`/threads/${id}`)
      const texts: Record<string, string> = {}
      for (const [title, ending] of [
        ['ThreadProtocol JSON', 'json'],
        ['JSON lines', 'jsonl'],
        ['One HTML file', 'html'],
      ] as const) {
        await page.getByRole('button', { name: 'Export' }).click()
        const waiting = page.waitForEvent('download')
        await page.getByRole('button', { name: title }).click()
        const download = await waiting
        expect(download.suggestedFilename()).toBe(`thread-${id.slice(-8)}.${ending}`)
        texts[ending] = await readFile(await download.path(), 'utf8')
        expect(texts[ending]).toContain('wool yarn')
        expect(texts[ending]).not.toContain('canary-of-a-secret')
      }
      expect(JSON.parse(texts['json']!).thread_id).toBe(id)
      expect(texts['html']).not.toContain('<script')
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Search and commands' }).fill('import')
      await page.keyboard.press('Enter')
      const file = (name: string, text: string) => ({
        name,
        mimeType: 'application/jsonl',
        buffer: Buffer.from(text),
      })
      const field = page.getByRole('dialog', { name: 'Import a thread' }).getByLabel(/^File/)
      await field.setInputFiles(file('wrong.jsonl', '{"no":"thread"}\n'))
      await page.getByRole('button', { name: 'Import and open' }).click()
      await page.getByText('INPUT_INVALID').waitFor()
      await field.setInputFiles(file('thread.jsonl', texts['jsonl']!))
      await page.getByRole('button', { name: 'Import and open' }).click()
      await page.waitForURL(
        (address) => /threads\//.test(address.href) && !address.href.includes(id),
      )
      await page.getByText('wool yarn').first().waitFor()
    })
  },
  timeout,
)

test(
  'a tool is approved for a time in one thread, the page says until when, and it can be revoked',
  async () => {
    const done: number[] = []
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      risk: 'write_high_risk',
      rollback: 'impossible',
      args: z.object({ amount: z.number() }),
      execute: (_, { amount }) => void done.push(amount),
    })
    const model = scripted(
      [1, 2, 3].flatMap((amount) => [
        calls('pay', { amount }, { id: `pay-${amount}` }),
        says(`Paid ${amount}.`),
      ]),
    )
    const prompt = definePrompt({ name: 'payer', prompt: '', model, tools: [pay] })
    const agents = [defineAgent({ name: 'payer', sideA: { prompt } })]
    await withStudio({ runtime: { agents } }, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'payer' })
      await runtime.threads.run(id, 'pay')
      const page = await open('/inbox')
      await page.getByRole('button', { name: 'Approve temporarily' }).waitFor()
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Search and commands' }).fill('approve')
      await page.getByText('No results for “approve”.').waitFor() // decisions are made where they are read
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Approve temporarily' }).click()
      await page.getByRole('button', { name: /^Approve for 1 hour/ }).click()
      // A call that cannot be undone is confirmed, with all that is allowed by it.
      const asked = 'Pay: amount 1. And for 1 hour, every further pay in this thread.'
      await page.getByRole('group', { name: asked }).waitFor()
      await page.getByRole('button', { name: 'Yes, run pay' }).click()
      await page.getByText('Approved for 1 hour.').waitFor()
      await page.goto(page.url().replace(/inbox.*/, `threads/${id}`))
      await page.getByText('Paid 1.').first().waitFor()
      await runtime.threads.run(id, 'pay again')
      await page.getByText('Paid 2.').first().waitFor() // no one was asked
      await page.getByRole('button', { name: '1 tool temporarily approved' }).click()
      await page.getByText(/ends in \d+ min|ends in 1 h/).waitFor()
      await page.getByRole('button', { name: 'Revoke' }).click()
      await page.getByText(/revoked by/).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'no temporary approval left' }).waitFor()
      expect((await runtime.threads.run(id, 'pay once more')).outcome).toBe('waiting')
      expect(done).toEqual([1, 2])
    })
  },
  timeout,
)

/** Starts the real command over a path, and returns its address. */
async function startCommand(path: string): Promise<string> {
  const bin = join(root, 'packages/cli/bin/skein.js')
  const command = spawn(process.execPath, [bin, 'studio', path, '--port', '0', '--json'], {
    cwd: path,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => command.once('close', resolve))
  onTestFinished(async () => {
    command.kill('SIGTERM')
    await ended
  })
  for await (const chunk of command.stdout) return JSON.parse(String(chunk)).url as string
  throw new Error('The command ended immediately.')
}

test(
  'skein studio shows the calls of plain llm() as they are made, to read and nothing else',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'skein-studio-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const add = tool({
      name: 'add',
      description: 'Adds one.',
      parameters: z.object({ a: z.number() }),
      run: ({ a }) => ({ sum: a + 1 }),
    })
    const model = scripted([calls('add', { a: 1 }, { id: 'c1' }), says('It is 2.'), says('Bye.')])
    const ask = llm({
      model,
      system: 'You add.',
      tools: [add],
      middleware: [inspector({ folder })],
    })
    await ask.generate('1 + 1?')
    const { open, offences, close } = pagesOf({ url: await startCommand(folder) })
    onTestFinished(close)
    const page = await open('/')
    await page.getByText('1 + 1?').first().click()
    await page.getByText('It is 2.').first().waitFor()
    await page.getByText('You may read this thread but not write to it.').waitFor()
    await page.getByText('add', { exact: true }).first().click()
    await page.getByRole('tab', { name: 'Request' }).click()
    await page.getByText('You add.').first().waitFor()
    // What is called while the page is open appears by itself.
    await ask.generate('Goodbye')
    await page.getByText('Goodbye').first().waitFor()
    expect(offences).toEqual([])
  },
  timeout,
)
