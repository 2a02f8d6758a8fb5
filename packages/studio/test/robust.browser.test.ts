import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted, waits, type ScriptPart } from '@skein/ai/testing'
import { defineAgent, definePrompt, defineTool } from '@skein/runtime'
import { createClient } from '@skein/server/client'
import { studioFiles } from '../src/index.ts'
import { pagesOf, violations, withBrowser, withStudio } from './studio-kit.ts'

withBrowser()

const BIDI = '\u202E'
const ANSI = '\u001B[31m'
const HOSTILE = [
  '<img src=x onerror=alert(1)><script>alert(2)</script>',
  '[click](javascript:alert(3)) [also](data:text/html,<script>alert(4)</script>)',
  '![](https://evil.example/pixel.png) [web](https://example.com/?q=1)',
  `pay ${BIDI}001 to me ${ANSI}red`,
].join('\n\n')
const LONG = 'x'.repeat(1_000_000)

/** A tool whose description and results are hostile; its name may only have plain characters. */
const write = defineTool({
  name: 'write',
  description: HOSTILE,
  args: z.object({ text: z.string() }),
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: (_, { text }) => text,
})

const hostile = defineAgent({
  name: 'hostile',
  title: `<b>Agent</b> ${BIDI}`,
  description: HOSTILE,
  sideA: {
    label: `<i>Label</i> ${BIDI}`,
    prompt: definePrompt({
      name: 'hostile',
      prompt: HOSTILE,
      model: scripted(({ messages }): ScriptPart | readonly ScriptPart[] => {
        const last = messages.at(-1)
        if (last?.type !== 'user') return says(`${HOSTILE}\n\n${LONG}`)
        if (last.text.includes('unknown'))
          return calls(`<img src=x onerror=alert(5)>${BIDI}`, { a: HOSTILE })
        if (last.text.includes('write')) return calls('write', { text: `${HOSTILE}${LONG}` })
        return says(`${HOSTILE}\n\n${LONG}`)
      }),
      tools: [write],
    }),
  },
})

describe('hostile content', () => {
  test('nothing runs, nothing hides, nothing breaks', async () => {
    await withStudio({ runtime: { agents: [hostile] } }, async ({ open, runtime }) => {
      const start = async (message: string): Promise<string> => {
        const { id } = await runtime.threads.create({ agent: 'hostile', message, title: HOSTILE })
        await runtime.threads.settled(id)
        return id
      }
      const said = await start(HOSTILE)
      const unknown = await start('call an unknown tool')
      const waiting = await start('write')
      await runtime.threads.files.write(
        said,
        `/${encodeURIComponent('<img src=x>')}${BIDI}.txt`,
        new Uint8Array(3),
      )
      await runtime.threads.send(said, {
        text: LONG,
        attachments: [`/${encodeURIComponent('<img src=x>')}${BIDI}.txt`],
      })
      await runtime.threads.settled(said)
      const page = await open(`/threads/${said}`)
      await page.getByText('Show more:').first().waitFor()
      for (const address of [
        `/threads/${said}`,
        `/threads/${said}?view=events`,
        `/threads/${said}?view=tree`,
        `/threads/${unknown}`,
        `/threads/${waiting}`,
        '/inbox',
        '/agents',
        '/agents/hostile',
      ]) {
        await page.goto(page.url().replace(/\/studio\/.*/, `/studio${address}`))
        await page.getByText('Loading').waitFor({ state: 'detached' })
        await page.locator('h1').first().waitFor()
        await page.waitForTimeout(150)
        const found = await page.evaluate(
          (marks) => {
            const links = [...document.querySelectorAll('#main a')].map(
              (one) => one.getAttribute('href') ?? '',
            )
            return {
              elements: document.querySelectorAll(
                '#main script, #main b img, #main [onerror], iframe',
              ).length,
              links: links.filter((href) => !/^(?:\/|https?:\/\/|mailto:)/.test(href)),
              // A character that hides or reorders may be in the page only in its visible form.
              hidden: marks.filter((mark) =>
                document.querySelector('#main')!.textContent.includes(mark),
              ),
              wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
            }
          },
          [BIDI, '\u001B'],
        )
        expect({ address, ...found }).toEqual({
          address,
          elements: 0,
          links: [],
          hidden: [],
          wide: 0,
        })
      }
      // All arguments of the waiting call can be seen, and what is not shown yet is said.
      await page.goto(page.url().replace(/\/studio\/.*/, '/studio/inbox'))
      await page.getByText('cannot be undone').waitFor()
      await page.getByRole('button', { name: /^Show all: / }).click()
      const shown = await page.locator('.ask pre').first().innerText()
      expect(shown.length).toBeGreaterThan(1_000_000)
      expect(shown).toContain('\\u202e')
    })
  }, 60_000)
})

async function startSlow(
  port: number,
  folder: string,
): Promise<{ server: ChildProcess; url: string }> {
  const script = join(import.meta.dirname, 'slow-server.ts')
  const server = spawn(
    process.execPath,
    ['--conditions=@skein/source', script, String(port), folder],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const ended = once(server, 'exit').then(() => {
    throw new Error('The server ended before it said its address.')
  })
  const [line] = (await Promise.race([once(server.stdout!, 'data'), ended])) as [Buffer]
  ended.catch(() => undefined) // later it is ended by the test
  return { server, url: line.toString().trim() }
}

test('kill -9 in mid-stream and a new start: the page continues by itself, and nothing is there twice', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'studio-kill-'))
  let { server, url } = await startSlow(0, folder)
  const pages = pagesOf({ url })
  try {
    const { id } = await createClient({ url }).threads.create({ agent: 'slow', message: 'speak' })
    const page = await pages.open(`/threads/${id}`)
    const chat = page.getByRole('region', { name: 'Conversation' })
    await chat.getByText('word4 ').waitFor()
    server.kill('SIGKILL')
    await once(server, 'exit')
    await page.getByText('disconnected, reconnecting').waitFor()
    // What was read stays readable.
    expect(await chat.innerText()).toContain('word4')
    ;({ server } = await startSlow(Number(new URL(url).port), folder))
    // The step begins again; what the dead process had said of it is gone.
    await chat.getByText('word8 ').waitFor({ timeout: 30_000 })
    expect((await chat.innerText()).split('word0 ')).toHaveLength(2)
    await chat.getByText('word29').waitFor({ timeout: 30_000 })
    await page.getByText('disconnected, reconnecting').waitFor({ state: 'detached' })
    const text = await chat.innerText()
    for (const word of ['speak', 'word0 ', 'word4 ', 'word29'])
      expect(text.split(word), word).toHaveLength(2)
    expect(pages.offences).toEqual([])
  } finally {
    await pages.close()
    server.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}, 90_000)

test('the first screen needs at most 130 kB of JavaScript, compressed', () => {
  const files = studioFiles()
  const html = Buffer.from(files.get('index.html')!.body).toString()
  const scripts = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g)].map(
    ([, path]) => path!,
  )
  expect(scripts.length).toBeGreaterThan(1)
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)/)
  const sum = scripts.reduce((bytes, path) => bytes + gzipSync(files.get(path)!.body).byteLength, 0)
  expect(sum).toBeLessThan(130_000)
})

test('the page is there at any depth, under a prefix, and names its assets relative to itself', async () => {
  await withStudio({ serve: { prefix: '/tools/agents' } }, async ({ url, runtime, open }) => {
    const { id } = await runtime.threads.create({
      agent: 'support',
      message: 'Where is order O-7?',
    })
    await runtime.threads.settled(id)
    const page = await open(`/threads/${id}`, { prefix: '/tools/agents' })
    await page.getByRole('region', { name: 'Conversation' }).getByText('is delivered').waitFor()
    const answer = await fetch(`${new URL(url).origin}/`, {
      headers: { accept: 'text/html' },
      redirect: 'manual',
    })
    expect(answer.headers.get('location')).toBe('tools/agents/studio/')
  })
})

const KEY = 'key-of-ada-0123456789'

describe('sign-in', () => {
  const auth = {
    keys: [
      {
        key: KEY,
        tenant: 'acme',
        user: 'ada',
        scopes: ['threads:read', 'threads:write', 'approvals:write'] as const,
      },
      {
        key: 'key-of-bob-0123456789',
        tenant: 'acme',
        user: 'bob',
        scopes: ['threads:read'] as const,
      },
    ],
  }

  test('with a key, which no script can read; scopes decide what can be pressed; sign out', async () => {
    await withStudio({ serve: { auth } }, async ({ open }) => {
      const page = await open('/inbox')
      await page.getByLabel('Key', { exact: true }).fill('wrong-key-000000000')
      await page.keyboard.press('Enter')
      await page.getByText('The key is unknown or expired.').waitFor()
      for (const colorScheme of ['dark', 'light'] as const)
        for (const width of [390, 1440]) {
          await page.emulateMedia({ colorScheme })
          await page.setViewportSize({ width, height: 780 })
          expect(await violations(page)).toEqual([])
        }
      await page.getByLabel('Key', { exact: true }).fill(KEY)
      await page.keyboard.press('Enter')
      await page.getByText('Nothing waits for a person.').waitFor()
      const kept = await page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage }))
      expect(kept).not.toContain(KEY.slice(0, 8))
      await page.getByRole('button', { name: /Sign out/ }).click()
      await page.getByLabel('Key', { exact: true }).fill('key-of-bob-0123456789')
      await page.keyboard.press('Enter')
      await page.getByRole('link', { name: 'Threads' }).click()
      await page.getByText('You may read threads but not start them.').waitFor()
    })
  })

  test('a page of another origin can do nothing with the session', async () => {
    await withStudio({ serve: { auth } }, async ({ open, url, runtime }) => {
      const page = await open('/')
      await page.getByLabel('Key', { exact: true }).fill(KEY)
      await page.keyboard.press('Enter')
      await page.getByText('No threads yet').waitFor()
      const evil = createServer((_, response) =>
        response.setHeader('content-type', 'text/html').end('<title>evil</title>'),
      ).listen(0, '127.0.0.1')
      await once(evil, 'listening')
      const other = await page.context().newPage()
      await other.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`)
      const tried = await other.evaluate(async (target) => {
        const body = JSON.stringify({ agent: 'support', message: 'from evil' })
        const tries: RequestInit[] = [
          {
            method: 'POST',
            credentials: 'include',
            body,
            headers: { 'content-type': 'application/json' },
          },
          { method: 'POST', credentials: 'include', body, mode: 'no-cors' },
        ]
        return Promise.all(
          tries.map((init) =>
            fetch(`${target}/threads`, init).then(
              (answer) => answer.ok,
              () => false,
            ),
          ),
        )
      }, url)
      evil.close()
      expect(tried).toEqual([false, false])
      expect(await runtime.threads.list()).toEqual([])
    })
  })
})

test('what is streamed is spoken by sentences, and the whole answer once', async () => {
  const talker = defineAgent({
    name: 'talker',
    sideA: {
      prompt: definePrompt({
        name: 'talker',
        prompt: 'Talk.',
        model: scripted(() =>
          'One two three. Four five six. Seven'
            .split(/(?<= )/)
            .flatMap((word): ScriptPart[] => [says(word), waits(60)]),
        ),
      }),
    },
  })
  await withStudio({ runtime: { agents: [talker] } }, async ({ open, runtime }) => {
    const { id } = await runtime.threads.create({ agent: 'talker' })
    const page = await open(`/threads/${id}`)
    await page.getByText('No messages yet').waitFor()
    await page.evaluate(() => {
      const spoken: string[] = []
      Object.assign(window, { spoken })
      const region = document.querySelector('[data-testid=spoken]')!
      new MutationObserver(() => spoken.push(region.textContent)).observe(region, {
        childList: true,
        characterData: true,
        subtree: true,
      })
    })
    await runtime.threads.send(id, 'talk')
    await runtime.threads.settled(id)
    await page.getByRole('region', { name: 'Conversation' }).getByText('Seven').waitFor()
    const spoken = await page.evaluate(() => (window as unknown as { spoken: string[] }).spoken)
    expect(spoken.join(' ')).toBe('One two three. Four five six. Seven')
    expect(spoken.length).toBeLessThanOrEqual(3)
  })
})
