import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import type { EmbeddedRuntime } from '@skein/runtime'
import { root } from '../../../scripts/workspace.ts'
import { withBrowser, withStudio, type StudioKit } from './studio-kit.ts'

withBrowser()

/** With this variable the tests write the pictures that the documentation shows. */
const picturesWanted = process.env['STUDIO_PICTURES'] !== undefined
const MAX_PICTURE_BYTES = 150_000

interface Seeded {
  readonly refund: string
  readonly label: string
  readonly order: string
  readonly granted: string
}

async function seed(runtime: EmbeddedRuntime): Promise<Seeded> {
  const start = async (message: string): Promise<string> => {
    const { id } = await runtime.threads.create({ agent: 'support', message })
    await runtime.threads.settled(id)
    return id
  }
  const order = await start('Where is order O-8?')
  const label = await start('Please write a label for the oak loom.')
  const granted = await runtime.threads.create({ agent: 'refunds' })
  const refund = await start('Please refund order O-7.')
  return { refund, label, order, granted: granted.id }
}

async function picture(page: Page, name: string): Promise<void> {
  if (!picturesWanted) return
  const bytes = await page.screenshot({ animations: 'disabled', caret: 'hide' })
  expect(bytes.byteLength).toBeLessThan(MAX_PICTURE_BYTES)
  const folder = join(root, 'docs', 'studio')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.png`), bytes)
}

async function violations(page: Page): Promise<string[]> {
  const { violations: found } = await new AxeBuilder({ page })
    // Without frames there is nothing to join, so the second page that axe would open for it is left out.
    .setLegacyMode(true)
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
    .analyze()
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}\n  ${failureSummary}`),
  )
}

/** Every screen, and how it is recognised. */
const SCREENS: readonly {
  readonly name: string
  readonly open: (kit: StudioKit, seeded: Seeded, options: object) => Promise<Page>
}[] = [
  {
    name: 'threads',
    async open({ open }, _, options) {
      const page = await open('/', options)
      await page.getByText('Please refund order O-7.').waitFor()
      await page.getByText('Support desk').waitFor({ state: 'attached' })
      return page
    },
  },
  {
    name: 'new',
    async open({ open }, _, options) {
      const page = await open('/threads?new=1', options)
      await page.getByText('Support desk').waitFor()
      return page
    },
  },
  {
    name: 'thread',
    async open({ open }, { refund }, options) {
      const page = await open(`/threads/${refund}`, options)
      await page.getByRole('button', { name: /^waiting: refund/ }).click()
      await page.getByRole('tab', { name: 'Evidence' }).click()
      await page.getByRole('button', { name: 'Approve', exact: false }).first().waitFor()
      return page
    },
  },
  {
    name: 'child',
    async open({ open }, { label }, options) {
      const page = await open(`/threads/${label}`, options)
      await page.getByRole('button', { name: 'Open asset_subagent here' }).click()
      await page.getByText('Reviewer').first().waitFor()
      return page
    },
  },
  {
    name: 'tree',
    async open({ open }, { label }, options) {
      const page = await open(`/threads/${label}?view=tree`, options)
      await page.getByRole('rowheader', { name: /asset_subagent/ }).waitFor()
      return page
    },
  },
  {
    name: 'timeline',
    async open({ open }, { label }, options) {
      const page = await open(`/threads/${label}?view=timeline`, options)
      await page.locator('.bar-track .bar.child').waitFor()
      return page
    },
  },
  {
    name: 'past',
    async open({ open }, { refund }, options) {
      const page = await open(`/threads/${refund}?at=30`, options)
      await page.getByText('viewing event 30 of 36').waitFor()
      return page
    },
  },
  {
    name: 'fork',
    async open({ open }, { order }, options) {
      const page = await open(`/threads/${order}`, options)
      await page.getByRole('button', { name: 'Edit and fork' }).first().click()
      await page.getByTestId('runs-again').waitFor()
      return page
    },
  },
  {
    name: 'diff',
    async open({ open }, { order, label }, options) {
      const page = await open(`/threads/${order}?with=${label}`, options)
      await page.getByText('First difference', { exact: true }).waitFor()
      return page
    },
  },
  {
    name: 'events',
    async open({ open }, { refund }, options) {
      const page = await open(`/threads/${refund}?view=events&select=event+35`, options)
      await page.getByText('APPROVAL_REQUIRED').first().waitFor()
      return page
    },
  },
  {
    name: 'audit',
    async open({ open }, { refund }, options) {
      const page = await open(`/threads/${refund}?select=call_3&tab=audit`, options)
      await page.getByText(/^Verified: /).waitFor()
      return page
    },
  },
  {
    name: 'request',
    async open({ open }, { refund }, options) {
      const page = await open(`/threads/${refund}?select=call_3&tab=request`, options)
      await page.getByText('You are the refunds desk').first().waitFor()
      return page
    },
  },
  {
    name: 'inbox',
    async open({ open }, _, options) {
      const page = await open('/inbox', options)
      await page.getByText('tool_result of look_up_order').waitFor()
      return page
    },
  },
  {
    name: 'change',
    async open({ open }, _, options) {
      const page = await open('/inbox', options)
      await page.getByRole('button', { name: 'Approve with changes' }).click()
      await page.getByRole('dialog').getByLabel('amount').waitFor()
      return page
    },
  },
  {
    name: 'find',
    async open({ open }, { label }, options) {
      const page = await open(`/threads/${label}`, options)
      await page.getByRole('button', { name: 'Open asset_subagent here' }).waitFor()
      await page.keyboard.press('f')
      await page.getByRole('searchbox', { name: 'Find in this thread' }).fill('made with')
      await page.locator('.log-row.found').waitFor()
      return page
    },
  },
  {
    name: 'agents',
    async open({ open }, _, options) {
      const page = await open('/agents', options)
      await page.getByText('Support desk').waitFor()
      return page
    },
  },
  {
    name: 'agent',
    async open({ open }, _, options) {
      const page = await open('/agents/refunds', options)
      await page.getByText('high risk: a person decides').waitFor()
      return page
    },
  },
  {
    name: 'tool',
    async open({ open }, _, options) {
      const page = await open('/agents/refunds', options)
      await page.locator('summary').filter({ hasText: 'look_up_order' }).click()
      const form = page.locator('.try-tool').filter({ visible: true })
      await form.getByLabel('order').fill('O-7')
      await form.getByRole('button', { name: 'Run this tool once' }).click()
      await form.getByRole('status').waitFor()
      await form.scrollIntoViewIfNeeded()
      return page
    },
  },
  {
    name: 'api',
    async open({ open }, _, options) {
      const page = await open('/api/decide', options)
      await page.getByRole('button', { name: 'Send POST' }).waitFor()
      return page
    },
  },
  {
    name: 'api-list',
    async open({ open }, _, options) {
      const page = await open('/api', options)
      await page.getByText('/threads/{threadId}/grants').first().waitFor()
      return page
    },
  },
  {
    name: 'palette',
    async open({ open }, _, options) {
      const page = await open('/inbox', options)
      await page.getByText('tool_result of look_up_order').waitFor()
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Go to or do' }).fill('re')
      await page.getByRole('option', { name: /Please refund order/ }).waitFor()
      return page
    },
  },
  {
    name: 'grants',
    async open({ open, runtime }, { granted }, options) {
      if ((await runtime.threads.grants.list(granted)).length === 0)
        await runtime.threads.grants.make(granted, {
          tool: 'refund',
          forMs: 3_600_000,
          by: 'ana',
          reason: 'Recall of the lamps',
        })
      const page = await open(`/threads/${granted}`, options)
      await page.getByRole('button', { name: '1 tool allowed for a time' }).click()
      await page.getByRole('button', { name: 'Revoke' }).waitFor()
      return page
    },
  },
  {
    // After `grants`, which makes the grant.
    name: 'allowed',
    async open({ open }, _, options) {
      const page = await open('/inbox', options)
      await page.getByRole('button', { name: '1 tool allowed for a time' }).click()
      await page.getByRole('button', { name: 'Revoke' }).waitFor()
      return page
    },
  },
]

const tooWide = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)

// Each screen is opened once and then shown in the other theme and in less room, because opening takes longest.
test('every screen is there in the light and in the dark theme, axe finds nothing, and at 200 % nothing is too wide', async () => {
  await withStudio({}, async (kit) => {
    const seeded = await seed(kit.runtime)
    const problems: string[] = []
    for (const { name, open } of SCREENS) {
      const page = await open(kit, seeded, { theme: 'light', width: 1120, height: 680 })
      const check = async (how: string): Promise<void> =>
        void problems.push(...(await violations(page)).map((text) => `${name}, ${how}: ${text}`))
      await picture(page, `${name}-light`)
      await check('light')
      await page.emulateMedia({ colorScheme: 'dark' })
      await picture(page, `${name}-dark`)
      await check('dark')
      // 200 % of a window of 1280 px has the room of 640 px.
      await page.setViewportSize({ width: 640, height: 720 })
      const overflow = await tooWide(page)
      if (overflow > 0) problems.push(`${name}: ${overflow} px too wide at 200 %`)
      await check('200 %')
      await page.context().close()
    }
    expect(problems).toEqual([])
  })
}, 240_000)

test('at 320 px no screen is wider than the window, and axe finds nothing', async () => {
  await withStudio({}, async (kit) => {
    const seeded = await seed(kit.runtime)
    const problems: string[] = []
    for (const { name, open } of SCREENS) {
      const page = await open(kit, seeded, { width: 320, height: 720 })
      await picture(page, `${name}-narrow`)
      const overflow = await tooWide(page)
      if (overflow > 0) problems.push(`${name}: ${overflow} px too wide`)
      problems.push(...(await violations(page)).map((text) => `${name}: ${text}`))
      await page.context().close()
    }
    expect(problems).toEqual([])
  })
}, 240_000)
