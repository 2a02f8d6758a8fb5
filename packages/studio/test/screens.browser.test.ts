import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import type { EmbeddedRuntime } from '@skein/runtime'
import { root } from '../../../scripts/workspace.ts'
import { violations, withBrowser, withStudio, type StudioKit } from './studio-kit.ts'

withBrowser()

/** With this variable the tests write the pictures that the documentation shows, and no others. */
const picturesWanted = process.env['STUDIO_PICTURES'] !== undefined
const SHOWN_PICTURES: readonly string[] = [
  'thread-light',
  'inbox-dark',
  'timeline-light',
  'api-light',
  'palette-dark',
  'grants-light',
]
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
  if (!picturesWanted || !SHOWN_PICTURES.includes(name)) return
  const bytes = await page.screenshot({ animations: 'disabled', caret: 'hide' })
  expect(bytes.byteLength).toBeLessThan(MAX_PICTURE_BYTES)
  const folder = join(root, 'docs', 'studio')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.png`), bytes)
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
      await page.getByText('Support desk', { exact: true }).waitFor({ state: 'attached' })
      return page
    },
  },
  {
    name: 'new',
    async open({ open }, _, options) {
      const page = await open('/threads?new=1', options)
      await page.getByText('Support desk', { exact: true }).waitFor()
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
    name: 'grant menu',
    async open({ open }, _, options) {
      const page = await open('/inbox', options)
      await page.getByRole('button', { name: 'Approve temporarily' }).click()
      await page.getByRole('button', { name: /^Approve for 24 hours/ }).waitFor()
      return page
    },
  },
  {
    name: 'selected threads',
    async open({ open }, _, options) {
      const page = await open('/', options)
      await page.getByRole('button', { name: 'Select threads' }).click()
      await page
        .getByLabel(/^Select Please/)
        .first()
        .check()
      return page
    },
  },
  {
    name: 'thread menu',
    async open({ open }, { order }, options) {
      const page = await open(`/threads/${order}`, options)
      await page.getByRole('button', { name: 'More' }).click()
      await page.getByRole('button', { name: /^Rename/ }).waitFor()
      return page
    },
  },
  {
    name: 'rename',
    async open({ open }, { order }, options) {
      const page = await open(`/threads/${order}`, options)
      await page.getByRole('button', { name: 'More' }).click()
      await page.getByRole('button', { name: /^Rename/ }).click()
      await page.getByRole('dialog').getByLabel('Title').waitFor()
      return page
    },
  },
  {
    name: 'evidence',
    async open({ open }, { refund }, options) {
      const page = await open(`/threads/${refund}?select=call_3&tab=evidence`, options)
      await page.getByRole('heading', { name: 'Evidence of the thread' }).waitFor()
      return page
    },
  },
  {
    name: 'deny',
    async open({ open }, _, options) {
      const page = await open('/inbox', options)
      await page.getByRole('button', { name: /^Deny…/ }).click()
      await page.getByRole('dialog').waitFor()
      return page
    },
  },
  {
    name: 'keys',
    async open({ open }, _, options) {
      const page = await open('/inbox', options)
      await page.getByRole('button', { name: 'Keys' }).click()
      await page.getByRole('dialog').waitFor()
      return page
    },
  },
  {
    name: 'not there',
    async open({ open }, _, options) {
      const page = await open('/threads/none', options)
      await page.getByText('There is no such thread.').waitFor()
      return page
    },
  },
  {
    name: 'no page',
    async open({ open }, _, options) {
      const page = await open('/nothing/here', options)
      await page.getByText('There is no page at this address').waitFor()
      return page
    },
  },
  {
    name: 'no match',
    async open({ open }, _, options) {
      const page = await open('/threads?q=status%3Afoo', options)
      await page.getByText(/^No state is called “foo”/).waitFor()
      return page
    },
  },
  {
    name: 'delete',
    async open({ open }, { order }, options) {
      const page = await open(`/threads/${order}`, options)
      await page.getByRole('button', { name: 'More' }).click()
      await page.getByRole('button', { name: /^Delete/ }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).waitFor()
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
      await page.getByText('Support desk', { exact: true }).waitFor()
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
      await page.getByRole('combobox', { name: 'Search and commands' }).fill('re')
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
      await page.getByRole('button', { name: '1 tool temporarily approved' }).click()
      await page.getByRole('button', { name: 'Revoke' }).waitFor()
      return page
    },
  },
  {
    // After `grants`, which makes the grant.
    name: 'allowed',
    async open({ open }, _, options) {
      const page = await open('/inbox', options)
      await page.getByRole('button', { name: '1 tool temporarily approved' }).click()
      await page.getByRole('button', { name: 'Revoke' }).waitFor()
      return page
    },
  },
  {
    // Last, because it starts another thread.
    name: 'duplicates',
    async open({ open, runtime }, { refund }, options) {
      const again = { agent: 'support', message: 'Please refund order O-7.', owner: 'grace' }
      if ((await runtime.inbox.list()).length < 2) {
        const { id } = await runtime.threads.create(again)
        await runtime.threads.settled(id)
      }
      const item = (await runtime.inbox.list()).find(({ threadId }) => threadId === refund)
      const page = await open(`/inbox/${item!.interruptId}`, options)
      await page.getByText(/The same call with the same arguments waits/).waitFor()
      return page
    },
  },
]

const tooWide = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)

/** What a person could want to read or press, and of which a part is outside the window or cut off at its side. */
const cutOff = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const isCut = (element: Element): boolean => {
      const { left, right, width, height } = element.getBoundingClientRect()
      if (width === 0 || height === 0) return false
      if (left < -1 || right > document.documentElement.clientWidth + 1) return true
      for (let box = element.parentElement; box; box = box.parentElement) {
        const { overflowX, textOverflow } = getComputedStyle(box)
        // A text that ends with an ellipsis says that there is more; what scrolls has a scroll bar.
        if (textOverflow === 'ellipsis' || box.matches('pre, .hidden, .bar-track')) return false
        if (overflowX === 'visible') continue
        const edge = box.getBoundingClientRect()
        if (left < edge.left - 1 || right > edge.right + 1) return true
      }
      return false
    }
    const pen = document.createElement('canvas').getContext('2d')!
    const hasCutPlaceholder = (field: HTMLInputElement): boolean => {
      const { font, paddingLeft, paddingRight } = getComputedStyle(field)
      pen.font = font
      const room = field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)
      return field.value === '' && pen.measureText(field.placeholder).width > room
    }
    const fields = [...document.querySelectorAll<HTMLInputElement>('input[placeholder]')]
    const placeholders = fields
      .filter((field) => field.clientWidth > 0 && hasCutPlaceholder(field))
      .map(({ placeholder }) => `placeholder: ${placeholder}`)
    const wanted =
      'a, button, input, textarea, select, summary, h1, h2, h3, p, td, th, dt, dd, .tick'
    const elements = [...document.querySelectorAll(wanted)]
      .filter((element) => !element.closest('.hidden, .skip, [hidden]') && isCut(element))
      .map(
        (element) =>
          `${element.tagName} ${element.className}: ${element.textContent?.slice(0, 40)}`,
      )
    return [...placeholders, ...elements]
  })

// Each screen is opened once and then shown in the other theme and in other windows, because opening takes longest.
test('every screen is there in the light and in the dark theme, axe finds nothing, and nothing is cut off or too wide', async () => {
  await withStudio({}, async (kit) => {
    const seeded = await seed(kit.runtime)
    const problems: string[] = []
    for (const { name, open } of SCREENS) {
      const page = await open(kit, seeded, { theme: 'light', width: 1120, height: 680 })
      const check = async (how: string): Promise<void> => {
        problems.push(...(await violations(page)).map((text) => `${name}, ${how}: ${text}`))
        problems.push(...(await cutOff(page)).map((text) => `${name}, ${how}: cut off: ${text}`))
      }
      await picture(page, `${name}-light`)
      await page.emulateMedia({ colorScheme: 'dark' })
      await picture(page, `${name}-dark`)
      for (const colorScheme of ['dark', 'light'] as const) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width: 1440, height: 900 })
        await check(`1440 px, ${colorScheme}`)
      }
      // 200 % of a window of 1280 px has the room of 640 px.
      await page.setViewportSize({ width: 640, height: 720 })
      const overflow = await tooWide(page)
      if (overflow > 0) problems.push(`${name}: ${overflow} px too wide at 200 %`)
      await check('200 %')
      await page.context().close()
    }
    expect(problems).toEqual([])
  })
}, 300_000)

test('on a phone of 390 px, and at 320 px, no screen is wider than the window or cut off, and axe finds nothing', async () => {
  await withStudio({}, async (kit) => {
    const seeded = await seed(kit.runtime)
    const problems: string[] = []
    for (const { name, open } of SCREENS) {
      const page = await open(kit, seeded, { theme: 'light', width: 390, height: 780 })
      for (const [width, colorScheme] of [
        [390, 'light'],
        [390, 'dark'],
        [320, 'light'],
      ] as const) {
        await page.setViewportSize({ width, height: 780 })
        await page.emulateMedia({ colorScheme })
        const how = `${name}, ${width} px, ${colorScheme}`
        const overflow = await tooWide(page)
        if (overflow > 0) problems.push(`${how}: ${overflow} px too wide`)
        problems.push(...(await cutOff(page)).map((text) => `${how}: cut off: ${text}`))
        problems.push(...(await violations(page)).map((text) => `${how}: ${text}`))
      }
      await page.context().close()
    }
    expect(problems).toEqual([])
  })
}, 300_000)
