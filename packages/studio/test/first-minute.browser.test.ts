import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readJson, root } from '../../../scripts/workspace.ts'
import { pagesOf, withBrowser } from './studio-kit.ts'

withBrowser()

/** How long a person may take who follows the path without reading anything. */
const FIRST_MINUTE_MS = 60_000

/** Runs the command of `npm start` in a folder of its own, where it keeps its store, on any port. */
async function npmStart(folder: string): Promise<{ server: ChildProcess; url: string }> {
  const { scripts } = readJson(join(root, 'package.json')) as { scripts: { start: string } }
  const command = scripts.start.replaceAll(/ (?=(?:scripts|packages|examples)\/)/g, ` ${root}/`)
  const server = spawn(`${command} --port 0 --log silent`, {
    cwd: folder,
    shell: true,
    // In a group of its own, so that what the shell has started ends with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  const address = new Promise<string>((resolve, reject) => {
    server.stdout.on('data', (part: Buffer) => {
      printed += part.toString()
      const url = /^address\s+(\S+)$/m.exec(printed)?.[1]
      if (url !== undefined) resolve(url)
    })
    server.on('exit', () => reject(new Error(`The server has ended: ${printed}`)))
  })
  return { server, url: await address }
}

test('from npm start: send a message, watch a child, approve a refund, find the evidence, fork and compare', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'studio-first-minute-'))
  const started = performance.now()
  const { server, url } = await npmStart(folder)
  const pages = pagesOf({ url })
  try {
    const page = await pages.open('/', { width: 1280, height: 800 })
    // The browser at the printed address is sent to the page, whose field has the focus.
    await page.goto(url)
    await page.getByLabel('First message').waitFor()
    await page.waitForFunction(() => document.activeElement?.tagName === 'TEXTAREA')
    await page.keyboard.type('Please write a label for the oak loom.')
    await page.keyboard.press('Enter')
    const chat = page.getByRole('region', { name: 'Conversation' })
    await page.getByRole('button', { name: 'Open asset_subagent here' }).click()
    await chat.getByText('Reviewer').first().waitFor()
    await chat.getByText('Here it is: Oak loom').waitFor()

    await page.getByRole('textbox', { name: 'Message' }).fill('Please refund order O-7.')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Inbox 1' }).click()
    await page.getByRole('button', { name: 'Approve a' }).click()
    await page.getByText('Approved.', { exact: true }).waitFor()
    // What was decided leads back to where it happened, with the call selected.
    await page.getByRole('link', { name: 'open the thread' }).click()
    await chat.getByText('25 euros for order O-7 are on their way back.').waitFor()
    await page
      .getByText(/^Approved by /)
      .first()
      .waitFor()
    await page.getByRole('tab', { name: 'Evidence' }).click()
    await page.getByRole('tabpanel').getByText('tool_result of refund').waitFor()
    await page.getByRole('tab', { name: 'Audit' }).click()
    await page.getByText(/^Verified: /).waitFor()
    await page.getByRole('button', { name: 'Close the details' }).click()

    await chat.getByRole('article').first().hover()
    await page.getByRole('button', { name: 'Edit and fork' }).first().click()
    await page.getByTestId('runs-again').filter({ hasText: '1 × refund' }).waitFor()
    await page
      .getByLabel('The message in the new branch')
      .fill('Please write a label for the red loom.')
    await page.getByRole('button', { name: 'Fork and run' }).click()
    await chat.getByText('Here it is: Red loom').waitFor()
    await page.getByRole('link', { name: 'Compare' }).click()
    await page.getByText('First difference', { exact: true }).waitFor()
    const marked = page.locator('.diff-pair').first().locator('mark')
    expect((await marked.allInnerTexts()).map((text) => text.trim()).toSorted()).toEqual([
      'oak',
      'red',
    ])
    const tookMs = performance.now() - started
    console.info(`the path took ${(tookMs / 1000).toFixed(1)} s`)
    expect(tookMs).toBeLessThan(FIRST_MINUTE_MS)
    expect(pages.offences).toEqual([])
  } finally {
    await pages.close()
    const ended = once(server, 'exit')
    process.kill(-server.pid!, 'SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
}, 120_000)
