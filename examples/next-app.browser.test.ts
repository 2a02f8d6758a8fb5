import { cpSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exampleAgents, Running, startDev, tempFolder } from '../packages/cli/test/kit.ts'
import { launchBrowser } from '../scripts/browser.ts'
import { peersOf } from '../scripts/peers.ts'

/** Built and started as it would be in production, where its packages are installed. */
const peers = peersOf('next')

describe('a page of Next.js', { timeout: 180_000 }, () => {
  const cwd = join(peers.folder, 'app')
  const next = join(peers.folder, 'node_modules', 'next', 'dist', 'bin', 'next')
  const env = { NEXT_TELEMETRY_DISABLED: '1', CI: '1' }
  let browser: Browser

  beforeAll(async () => {
    browser = await launchBrowser()
  }, 120_000)
  afterAll(() => browser?.close())

  test('is built; words of an agent stream to it; a person approves in it', async () => {
    for (const name of ['app', 'next.config.ts', 'package.json', 'tsconfig.json'])
      cpSync(join(import.meta.dirname, 'next-app', name), join(cwd, name), { recursive: true })
    const start = (args: readonly string[], more: Record<string, string> = {}): Running =>
      new Running([next, ...args], { cwd, program: process.execPath, env: { ...env, ...more } })
    const built = await start(['build']).ended
    expect(built, built.stderr).toMatchObject({ code: 0 })

    const { url } = await startDev([exampleAgents], { cwd: tempFolder() })
    const server = start(['start', '--port', '0', '--hostname', '127.0.0.1'], { SKEIN_URL: url })
    await server.until('stdout', /Ready in/)
    const address = /http:\/\/127\.0\.0\.1:\d+/.exec(server.stdout)![0]
    const page = await browser.newPage()
    page.setDefaultTimeout(20_000)
    await page.goto(address)
    const say = async (text: string): Promise<void> => {
      await page.getByLabel('Message').fill(text)
      await page.getByRole('button', { name: 'Send' }).click()
    }
    await page.getByLabel('Message').waitFor()
    await page.evaluate(`seen = new Set(); new MutationObserver(() => {
      seen.add(document.querySelector('.assistant')?.textContent.length)
    }).observe(document.body, { subtree: true, childList: true, characterData: true })`)
    await say('hello')
    await page.getByText('or to have a label written.').waitFor()
    expect(await page.evaluate('seen.size')).toBeGreaterThan(5)

    await say('Please refund order O-7.')
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('Done: 25 euros for order O-7').waitFor()
    await page.reload()
    await page.getByText('Done: 25 euros for order O-7').waitFor()
    await page.close()

    const foreign = { headers: { 'sec-fetch-site': 'cross-site' } }
    expect((await fetch(`${address}/agents/support/chat/x`, foreign)).status).toBe(403)
  })
})
