import { expect, test } from 'vitest'
import type { EmbeddedRuntime } from '@skein/runtime'
import { threadView } from '@skein/runtime/view'
import { withBrowser, withStudio } from './studio-kit.ts'

withBrowser()

async function start(runtime: EmbeddedRuntime, message: string): Promise<string> {
  const { id } = await runtime.threads.create({ agent: 'support', message })
  await runtime.threads.settled(id)
  return id
}

test('the timeline has a row for every request, call, child and message, and a wait apart from them', async () => {
  await withStudio({}, async ({ runtime, open }) => {
    const label = await start(runtime, 'Please write a label for the oak loom.')
    const children = await runtime.threads.list({ parentId: label })
    let [models, calls] = [0, 0]
    for (const id of [label, ...children.map((child) => child.id)])
      for (const { event } of await runtime.threads.events(id)) {
        if (event.type === 'model_requested') models++
        if (event.type === 'message_added' && event.message.type === 'assistant')
          calls += event.message.toolCalls?.length ?? 0
      }
    const page = await open(`/threads/${label}?view=timeline`)
    const rows = page.locator('.bar-row')
    await rows.first().waitFor()
    await page.waitForFunction(
      (count) => document.querySelectorAll('.bar-track .bar.model').length === count,
      models,
    )
    // One of the calls is the child.
    expect(await page.locator('.bar-track .bar.child').count()).toBe(1)
    expect(await page.locator('.bar-track .bar.tool').count()).toBe(calls - 1)
    // Arrow keys move between rows, Enter opens the details, z zooms, 0 shows everything again.
    await rows.first().focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('complementary', { name: 'Details' }).waitFor()
    await page.keyboard.press('z')
    const whole = page.getByRole('button', { name: /^Whole/ })
    await page.waitForFunction(() =>
      [...document.querySelectorAll('.timeline-tools button')].every(
        (button) => !(button as HTMLButtonElement).disabled,
      ),
    )
    await page.keyboard.press('0')
    await page.waitForFunction(() => document.querySelector('.timeline-tools button:disabled'))
    expect(await whole.isDisabled()).toBe(true)

    const refund = await start(runtime, 'Please refund order O-7.')
    const waiting = await open(`/threads/${refund}?view=timeline`)
    await waiting.getByRole('button', { name: 'Waited', exact: true }).click()
    await waiting.getByText(/^1 of /).waitFor()
    expect(await waiting.locator('.bar-row .bar.waited').count()).toBe(1)
  })
}, 60_000)

test('time without work is folded to a mark with its length', async () => {
  await withStudio({}, async ({ runtime, open }) => {
    const id = await start(runtime, 'Where is order O-8?')
    const [first, ...rest] = await runtime.threads.events(id)
    expect(first).toBeDefined()
    expect(rest.length).toBeGreaterThan(3)
    // A copy of the thread whose second message came two hours after the first.
    await runtime.threads.run(id, 'Where is order O-8?')
    const log = (await runtime.threads.export(id)).trimEnd().split('\n')
    const later = log.findLastIndex((line) => line.includes('"message_queued"'))
    const moved = log.map((line, index) =>
      index < later
        ? line
        : line.replaceAll(
            /"at":"([^"]+)"/g,
            (_, at: string) => `"at":"${new Date(Date.parse(at) + 2 * 3_600_000).toISOString()}"`,
          ),
    )
    const copy = await runtime.threads.import(moved.join('\n'))
    const page = await open(`/threads/${copy.id}?view=timeline`)
    await page.getByText('2 h', { exact: true }).waitFor()
    // The bars have the room: the two hours take a small part of it.
    const widths = await page
      .locator('.axis .idle-mark')
      .evaluateAll((marks) => marks.map((mark) => mark.getBoundingClientRect().width))
    expect(widths).toHaveLength(1)
    expect(widths[0]).toBeLessThan(80)
  })
}, 60_000)

test('at any event, totals, tree and chat agree with a fold of the log to that number', async () => {
  await withStudio({}, async ({ runtime, open }) => {
    const id = await start(runtime, 'Please write a label for the oak loom.')
    const events = await runtime.threads.events(id)
    const [child] = await runtime.threads.list({ parentId: id })
    const childEvents = await runtime.threads.events(child!.id)
    const page = await open(`/threads/${id}?at=1`)
    const slider = page.getByRole('slider', { name: 'Event' })
    for (const { seq } of events) {
      await slider.fill(String(seq))
      await page.waitForURL((url) => url.searchParams.get('at') === String(seq))
      const time = Math.max(
        ...events.filter((one) => one.seq <= seq).map((one) => Date.parse(one.event.at)),
      )
      const until = childEvents.findLast((one) => Date.parse(one.event.at) <= time)?.seq ?? 0
      const root = threadView(events, { upTo: seq })
      const below = threadView(childEvents, { upTo: until })
      const tokens =
        root.usage.inputTokens +
        root.usage.outputTokens +
        below.usage.inputTokens +
        below.usage.outputTokens
      const words = root.items.flatMap((item) => (item.type === 'message' ? [item.text] : []))
      await page.getByText(`viewing event ${seq} of ${events.length}`).waitFor()
      await page.waitForFunction(
        ({ wanted, calls, messages, count }) => {
          const shown = document.querySelector('.numbers b.num')?.textContent
          return (
            shown === wanted &&
            document.querySelectorAll('.log .call').length === calls &&
            document.querySelectorAll('.log article').length === messages &&
            document
              .querySelector('.numbers')
              ?.textContent.endsWith(`${count} events`.replace(/^1 events/, '1 event'))
          )
        },
        {
          wanted: String(tokens),
          calls: root.items.filter((item) => item.type === 'call').length,
          messages: words.length,
          count: seq,
        },
      )
    }
    // Nothing can be done with the past, and nothing has run.
    await slider.fill(String(events.length - 3))
    await page
      .getByText('You are looking at an earlier state. Return to the present to write.')
      .waitFor()
    expect((await runtime.threads.events(id)).length).toBe(events.length)
    // Keys step event by event, and the way back removes the place from the address.
    await page.locator('h1').click()
    await page.keyboard.press('[')
    await page.waitForURL((url) => url.searchParams.get('at') === String(events.length - 4))
    await page.keyboard.press('h')
    await page.waitForURL((url) => !url.searchParams.has('at'))
  })
}, 90_000)

test('playing back goes through the log to its end and runs nothing', async () => {
  await withStudio({}, async ({ runtime, open }) => {
    const id = await start(runtime, 'Where is order O-8?')
    const { length } = await runtime.threads.events(id)
    const page = await open(`/threads/${id}?at=${length}`)
    await page.getByRole('button', { name: 'Play back' }).click()
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    // It began at the first event and is on its way.
    await page.waitForFunction(
      (last) => Number(document.querySelector<HTMLInputElement>('.scrubber input')?.value) < last,
      length,
    )
    await page.getByRole('button', { name: 'Play back' }).waitFor({ timeout: 20_000 })
    await page.getByText(`viewing event ${length} of ${length}`).waitFor()
    expect((await runtime.threads.events(id)).length).toBe(length)
  })
}, 60_000)

test('a fork with one word changed says what runs again, and both branches know each other', async () => {
  await withStudio({}, async ({ runtime, open }) => {
    const id = await start(runtime, 'Where is order O-8?')
    const { length } = await runtime.threads.events(id)
    const page = await open(`/threads/${id}`)
    await page.getByRole('button', { name: 'Edit and fork' }).first().click()
    await page
      .getByTestId('runs-again')
      .filter({ hasText: '2 model calls, 1 × look_up_order' })
      .waitFor()
    await page.getByLabel('The message in the new branch').fill('Where is order O-7?')
    await page.getByRole('button', { name: 'Fork and run' }).click()
    await page.waitForURL((url) => !url.pathname.includes(id))
    await page.getByText('Where is order O-7?').first().waitFor()
    await page.getByText('2/2').waitFor()
    await page.getByRole('link', { name: 'The branch before' }).click()
    await page.waitForURL((url) => url.pathname.includes(id))
    await page.getByText('1/2').waitFor()
    // The comparison marks the first difference and the changed words.
    await page.getByRole('link', { name: 'Compare' }).click()
    const pairs = page.locator('.diff-pair')
    await pairs.first().getByText('First difference').waitFor()
    expect(await pairs.first().locator('.removed mark').allInnerTexts()).toEqual(['O-8?'])
    expect(await pairs.first().locator('.added mark').allInnerTexts()).toEqual(['O-7?'])
    expect(await page.locator('.diff-first').count()).toBe(1)
    await page.getByRole('row', { name: /^Tokens/ }).waitFor()
    await page.getByRole('link', { name: 'Close the comparison' }).click()
    await page.waitForURL((url) => !url.searchParams.has('with'))
    // The original is as it was.
    expect((await runtime.threads.events(id)).length).toBe(length)
  })
}, 60_000)

test('a fork in the middle has everything before, and the comparison begins where they part', async () => {
  await withStudio({}, async ({ runtime, open }) => {
    const id = await start(runtime, 'Where is order O-7?')
    for (const order of ['O-8', 'O-9', 'O-7', 'O-8'])
      await runtime.threads.run(id, `Where is order ${order}?`)
    const steps = threadView(await runtime.threads.events(id)).items.length
    const page = await open(`/threads/${id}`, { height: 1600 })
    const chat = page.getByRole('region', { name: 'Conversation' })
    await chat.getByRole('article').nth(9).waitFor()
    // The fifth message of the person, with one word changed.
    await page.getByRole('button', { name: 'Edit and fork' }).nth(4).click()
    await page.getByLabel('The message in the new branch').fill('Where is order O-9?')
    await page.getByRole('button', { name: 'Fork and run' }).click()
    await page.waitForURL((url) => !url.pathname.includes(id))
    await page.getByText('2/2').waitFor()
    await page.getByRole('link', { name: 'Compare' }).click()
    const alike = steps - 3 // a question, a call and an answer differ
    await page.getByText(`${alike} steps before the first difference`).waitFor()
    expect(await page.locator('.diff-first').count()).toBe(1)
    const pair = page.locator('.diff-pair').filter({ hasText: 'First difference' })
    expect(await pair.locator('.removed mark').allInnerTexts()).toEqual(['O-9?'])
    expect(await pair.locator('.added mark').allInnerTexts()).toEqual(['O-8?'])
    // The sums of both, and their difference, follow what happens.
    await runtime.threads.run(new URL(page.url()).pathname.split('/').at(-1)!, 'And O-8?')
    const row = page.locator('.diff-sums tr').filter({ hasText: 'Events' }).locator('td')
    await expect
      .poll(async () => {
        const [mine = '', theirs = '', delta] = await row.allInnerTexts()
        const more = Number(theirs) - Number(mine)
        return more < 0 && delta === `−${-more}`
      })
      .toBe(true)
  })
}, 60_000)
