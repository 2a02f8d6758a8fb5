import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted, waits, type ScriptPart } from '@skein/ai/testing'
import {
  defineAgent,
  definePrompt,
  defineTool,
  type AgentDefinition,
  type EmbeddedRuntime,
} from '@skein/runtime'
import { withBrowser, withStudio } from './studio-kit.ts'

withBrowser()

/**
 * What a person should feel. Other programs share the machine of the tests, so what is measured is the time that
 * the page itself computes: a frame that waits for another program is not slow. Opening is measured by the clock,
 * too, but only printed.
 */
const OPEN_MS = 1000
const FRAME_MS = 50
/** The events of the thread itself are 3 MB; the logs of 500 children are not read before they are needed. */
const OPEN_BYTES = 5_000_000
const KEY_MS = 50
/** The first search reads everything; those after it are faster. */
const FIND_MS = 500

const CHILDREN = 500
const EVENTS = 10_000
const PER_MESSAGE = 100
const BIG_CHARS = 5_000_000

function agentsOf(): readonly AgentDefinition[] {
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    risk: 'read_only',
    args: z.object({ at: z.number() }),
    execute: (_, { at }) => ({ at, found: `thing ${at}` }),
  })
  const big = defineTool({
    name: 'big',
    description: 'Returns much.',
    risk: 'read_only',
    args: z.object({}),
    execute: () => 'x'.repeat(BIG_CHARS),
  })
  const stop = defineTool({
    name: 'stop',
    description: 'Ends.',
    risk: 'read_only',
    args: z.object({ text: z.string() }),
    execute: (_, { text }) => text,
  })
  const child = defineAgent({
    name: 'helper',
    type: 'dual_ai',
    exposeAsTool: true,
    toolDescription: 'Helps.',
    sideA: {
      prompt: definePrompt({
        name: 'help_a',
        prompt: 'Help.',
        model: scripted(() => says('Helped.')),
      }),
    },
    sideB: {
      prompt: definePrompt({
        name: 'help_b',
        prompt: 'End.',
        model: scripted(() => calls('stop', { text: 'Helped.' })),
        tools: [stop],
      }),
      sessionStop: { name: 'stop', messageProperty: 'text' },
    },
  })
  let count = 0
  const boss = defineAgent({
    name: 'boss',
    sideA: {
      prompt: definePrompt({
        name: 'boss',
        prompt: 'Work.',
        model: scripted(({ messages }): ScriptPart | readonly ScriptPart[] => {
          const text = messages.findLast((message) => message.type === 'user')?.text ?? ''
          if (messages.at(-1)?.type !== 'user' || text === 'end') return says(`Done with ${text}.`)
          const [what = '', times = '1'] = text.split(' ')
          return Array.from({ length: Number(times) }, () =>
            what === 'look'
              ? calls('look', { at: ++count })
              : what === 'big'
                ? calls('big', {})
                : calls('helper', { message: `Help ${++count}` }),
          )
        }),
        tools: [look, big, { name: 'helper', initUserMessageProperty: 'message' }],
      }),
    },
  })
  return [boss, child]
}

async function seed({ threads }: EmbeddedRuntime): Promise<string> {
  const { id } = await threads.create({ agent: 'boss', title: 'A large thread' })
  for (let made = 0; made < CHILDREN; made += PER_MESSAGE)
    await threads.run(id, `helper ${PER_MESSAGE}`)
  await threads.run(id, 'big 1')
  while ((await threads.get(id)).seq < EVENTS) await threads.run(id, `look ${PER_MESSAGE}`)
  await threads.run(id, 'end')
  return id
}

test('a thread of 10,000 events, 500 children and 5 MB in one result opens at its end, scrolls, and takes words immediately', async () => {
  const [boss, child] = agentsOf()
  await withStudio({ runtime: { agents: [boss!, child!] } }, async ({ runtime, open }) => {
    const id = await seed(runtime)
    const { seq, tree } = await runtime.threads.get(id)
    expect(seq).toBeGreaterThanOrEqual(EVENTS)
    expect((await runtime.threads.list({ parentId: id, limit: 1000 })).length).toBe(CHILDREN)
    // The first page warms the browser, as any page that a person had open before.
    const page = await open('/threads')
    await page.getByText('A large thread').waitFor()
    const work = await workOf(page)
    const bytes = await receivedBytes(page)
    const [workBefore, started] = [await work(), await page.evaluate(() => performance.now())]
    const server = process.cpuUsage()
    await page.getByText('A large thread').click()
    const opened = await page.waitForFunction(
      ({ count }) => {
        const shown = document.querySelector('.numbers')?.textContent ?? ''
        const last = [...document.querySelectorAll('.log .prose')].at(-1)?.textContent
        return shown.includes(`${count} events`) && last === 'Done with end.' && performance.now()
      },
      { count: seq },
      { polling: 'raf', timeout: 20_000 },
    )
    const openMs = Number(await opened.jsonValue()) - started
    // Until the end of the thread is there, server and page have worked as long as this together.
    const { user, system } = process.cpuUsage(server)
    const shownWork = (await work()) - workBefore + Math.round((user + system) / 1000)
    // Everything before the end has been read when the first message is in the list of entries.
    await page.waitForFunction(
      () => document.querySelector('.log-rows')!.clientHeight > 2000 * 30,
      undefined,
      { timeout: 20_000 },
    )
    const [openWork, openBytes] = [(await work()) - workBefore, bytes()]
    const chat = await longestFrame(page, '.log', work)
    const key = await longestKey(page, work)
    // What was said first is there, and a child in the middle opens in place.
    await page.locator('.log').evaluate((box) => box.scrollTo(0, 0))
    await page.getByText('helper 100', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Open helper here' }).first().click()
    await page.locator('.child-log').getByText('Helped.').first().waitFor()
    // Of a long result the page has the beginning; opened, it is whole.
    const big = page.getByRole('button', { name: 'Open big' })
    await page.locator('.log').focus()
    await page.keyboard.press('f')
    await page.getByRole('searchbox', { name: 'Find in this thread' }).fill('big')
    await big.click()
    const size = page.locator('.call-body').getByRole('button', { name: /^Show all: / })
    expect(
      Number.parseInt((await size.innerText()).slice('Show all: '.length), 10),
    ).toBeGreaterThan(200)
    await page.getByRole('button', { name: 'Close the search' }).click()
    // A word of a folded result is found, from one end of the thread to the other.
    await page.locator('.log').focus()
    await page.keyboard.press('f')
    const beforeFind = await work()
    await page.getByRole('searchbox', { name: 'Find in this thread' }).fill('thing 777')
    await page.locator('.log-row.found').getByText('thing 777').waitFor()
    const findWork = (await work()) - beforeFind
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: /^Tree/ }).click()
    await page.getByRole('rowheader').nth(20).waitFor()
    const treeFrame = await longestFrame(page, '.tree-view', work)
    await page.locator('.tree-view').evaluate((box) => box.scrollTo(0, 0))
    await page.getByRole('button', { name: `Close ${CHILDREN} threads below boss` }).click()
    await page.getByRole('rowheader').nth(1).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: /^Timeline/ }).click()
    // All children are read for the timeline; what it shows meanwhile says so.
    const axis = page.locator('.axis > span').first()
    await axis.filter({ hasNotText: 'reading more' }).waitFor({ timeout: 30_000 })
    expect(Number.parseInt(await axis.innerText(), 10)).toBeGreaterThan(CHILDREN * 3 + 2000)
    const timeline = await longestFrame(page, '.bars', work)
    await page.getByRole('link', { name: 'Events' }).click()
    await page.locator('.event').first().waitFor()
    const events = await longestFrame(page, '.events', work)
    console.info(
      `events ${seq}, tokens ${tree.tokens}: open after ${Math.round(openMs)} ms, ${shownWork} ms of work; with the whole history ` +
        `${openWork} ms of work and ${Math.round(openBytes / 1000)} kB; longest frame: chat ${chat}, tree ${treeFrame}, ` +
        `timeline ${timeline}, events ${events} ms; longest key ${key} ms; find ${findWork} ms`,
    )
    expect(shownWork).toBeLessThan(OPEN_MS)
    expect(openWork).toBeLessThan(OPEN_MS)
    expect(openBytes).toBeLessThan(OPEN_BYTES)
    for (const ms of [chat, treeFrame, timeline, events]) expect(ms).toBeLessThan(FRAME_MS)
    expect(key).toBeLessThan(KEY_MS)
    expect(findWork).toBeLessThan(FIND_MS)
  })
}, 240_000)

/** Returns a function that tells how long the page has computed so far, in ms of the processor. */
async function workOf(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    return Math.round(metrics.find(({ name }) => name === 'TaskDuration')!.value * 1000)
  }
}

/** Returns a function that tells how many bytes of answers the page has received from now on. */
async function receivedBytes(page: Page): Promise<() => number> {
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  let sum = 0
  session.on('Network.dataReceived', ({ dataLength }) => (sum += dataLength))
  return () => sum
}

/**
 * Scrolls from the end to the beginning and back, and returns the longest work for one step. The best of three
 * rounds counts: a frame that is slow by itself is slow in each, one in which the browser cleaned up is not.
 */
async function longestFrame(
  page: Page,
  selector: string,
  work: () => Promise<number>,
): Promise<number> {
  await page.evaluate((wanted) => {
    const box = document.querySelector(wanted)!
    const scroll = async ([part, extra]: readonly [number, number]): Promise<void> => {
      // Jumps through everything, and moves by a little at the same time as a wheel does.
      box.scrollTop = part * (box.scrollHeight - box.clientHeight) + extra
      for (let frame = 0; frame < 2; frame++)
        await new Promise((resolve) => requestAnimationFrame(resolve))
    }
    Object.assign(globalThis, { scroll })
  }, selector)
  const rounds: number[] = []
  for (let round = 0; round < 3; round++) {
    await page.waitForTimeout(300)
    let [longest, before] = [0, await work()]
    for (let step = 0; step <= 2 * STEPS; step++) {
      await page.evaluate(
        (place) =>
          (globalThis as unknown as { scroll(to: typeof place): Promise<void> }).scroll(place),
        [Math.abs(1 - step / STEPS), (step % 7) * 20] as const,
      )
      const now = await work()
      longest = Math.max(longest, now - before)
      before = now
    }
    rounds.push(longest)
  }
  return Math.min(...rounds)
}

const STEPS = 15

/** Types a sentence and returns the longest work for one key, up to the frame that shows it. */
async function longestKey(page: Page, work: () => Promise<number>): Promise<number> {
  await page.getByRole('textbox', { name: /^Message/ }).click()
  let [longest, before] = [0, await work()]
  for (const key of 'Please look again.') {
    await page.keyboard.type(key)
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)))
    const now = await work()
    longest = Math.max(longest, now - before)
    before = now
  }
  await page.keyboard.press('Escape')
  return longest
}

/** Ten minutes when everything is tested in depth, or as long as one says. */
const FOLLOW_MS = Number(
  process.env['STUDIO_FOLLOW_MS'] ?? (process.env['SKEIN_DEEP'] === undefined ? 60_000 : 600_000),
)
const LIVE = 20

test(
  'the heap stays flat while 20 live threads are followed',
  async () => {
    const talk = defineAgent({
      name: 'talk',
      sideA: {
        prompt: definePrompt({
          name: 'talk',
          prompt: 'Talk.',
          model: scripted(() =>
            Array.from({ length: 10 }, () => [says('some words '), waits(50)]).flat(),
          ),
        }),
      },
    })
    await withStudio({ runtime: { agents: [talk] } }, async ({ runtime, open }) => {
      const ids = await Promise.all(
        Array.from({ length: LIVE }, async (_, index) => {
          const { id } = await runtime.threads.create({ agent: 'talk', title: `Live ${index}` })
          return id
        }),
      )
      let isOver = false
      const talking = ids.map(async (id) => {
        while (!isOver) await runtime.threads.run(id, 'continue')
      })
      const page = await open('/threads')
      const session = await page.context().newCDPSession(page)
      const heap = async (): Promise<number> => {
        await page.getByRole('link', { name: 'Agents' }).click()
        await page.waitForTimeout(300)
        await session.send('HeapProfiler.collectGarbage')
        return (await session.send('Runtime.getHeapUsage')).usedSize
      }
      const sizes: number[] = []
      const end = Date.now() + FOLLOW_MS
      for (let index = 0; Date.now() < end; index++) {
        if (index % LIVE === 0) {
          sizes.push(await heap())
          await page.getByRole('link', { name: 'Threads', exact: true }).click()
        }
        await page
          .getByText(`Live ${index % LIVE}`, { exact: true })
          .first()
          .click()
        await page.locator('.log article').first().waitFor()
        await page.waitForTimeout(150)
      }
      sizes.push(await heap())
      isOver = true
      await Promise.all(talking)
      console.info(`heap in MB: ${sizes.map((size) => (size / 1e6).toFixed(1)).join(' ')}`)
      // The first round fills caches; after it the heap must not grow.
      expect(sizes.length).toBeGreaterThan(2)
      expect(sizes.at(-1)!).toBeLessThan(sizes[1]! * 1.25 + 1_000_000)
    })
  },
  FOLLOW_MS + 120_000,
)
