import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { isDecidedByRule, recordTrace } from './decision-trace.ts'
import { refundDesk, waitingThread } from './refund-desk.ts'
import { withBrowser, withStudio, type StudioKit } from './studio-kit.ts'

withBrowser()

const KEYS = [
  ...'aaaaeedggggjkctlhnfipx?/.[]',
  ...'Enter Enter Enter Enter Tab Tab Shift+Tab Escape ArrowDown Home Shift Control+k'.split(' '),
  ...'agents api gone'.split(' '),
  ' ',
]
const PAUSES_MS = [0, 0, 10, 30, 60, 120, 250, 500, 650, 720, 900, 1300]

/** What a press or a tap may begin or end on: the buttons of a decision, and what is around them. */
const PLACES = {
  approve: '[data-choice=approve]',
  confirm: '[data-choice=confirm]',
  deny: '[data-choice=deny]',
  heading: '.ask-title',
  row: '.row, .bar-row, .tree-view a, .call-main',
} as const
type Place = keyof typeof PLACES

type Action =
  | { readonly type: 'key'; readonly key: string }
  | {
      readonly type: 'press' | 'tap'
      readonly from: Place
      /** Where the pointer or the finger is lifted. */
      readonly to: Place
    }

type Plan = readonly { readonly action: Action; readonly pauseMs: number }[]

/** Numbers that depend only on the seed, so that a failure can be repeated. */
function randomOf(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0
    return ((state ^ (state >>> 12)) >>> 0) % below
  }
}

/** Random keys, presses and taps; every second plan begins like a decision, with pauses around the limit. */
function planOf(random: (below: number) => number): Plan {
  const oneOf = <T>(list: readonly T[]): T => list[random(list.length)]!
  const pause = (): number => oneOf(PAUSES_MS)
  const key = (name: string, pauseMs = pause()): Plan[number] => ({
    action: { type: 'key', key: name },
    pauseMs,
  })
  const point = (from: Place, to: Place = from, pauseMs = pause()): Plan[number] => ({
    action: { type: oneOf(['press', 'tap'] as const), from, to },
    pauseMs,
  })
  const place = (): Place => oneOf(Object.keys(PLACES) as Place[])
  const around = (): number => oneOf([650, 800, 900, 1000])
  // Some plans decide even where the machine is so busy that the pauses above are too short.
  if (random(10) === 0) {
    const long = 1600
    return oneOf([
      [key('a', long), key('Enter', long), key('Tab', 0), key('Tab', long), key('Enter', long)],
      [point('approve', 'approve', long), point('confirm', 'confirm', long)],
    ])
  }
  const noise = Array.from({ length: 1 + random(7) }, () => {
    const kind = random(8)
    if (kind === 0) return point(oneOf(['approve', 'confirm', 'deny'] as const))
    return kind === 1 ? point(place(), place()) : key(oneOf(KEYS))
  })
  if (random(2) === 0) return noise
  const almost = oneOf([
    [key('a', around()), key('Enter', around()), key('Tab', 0), key('Tab', around()), key('Enter')],
    [key('a', around()), key(' ', around()), key('Tab', 0), key('Tab', around()), key(' ')],
    // A key in between takes the focus away, whatever it is.
    [
      key('a', around()),
      key(oneOf(KEYS), around()),
      key('Enter', around()),
      key('Tab', 0),
      key('Tab', around()),
      key('Enter'),
    ],
    [point('approve', 'approve', around()), point('confirm')],
    [point('approve', 'approve', around()), point(place(), 'confirm')],
  ])
  return [...noise.slice(0, random(2)), ...almost]
}

/** A thread with the waiting call, and the thread above it if it is a child. */
interface Waiting {
  readonly id: string
  readonly parentId: string | undefined
}

/** Every screen on which the call waits, or from which a key leads to it. */
const SCREENS: readonly ((waiting: Waiting) => string)[] = [
  () => '/inbox',
  () => '/inbox',
  () => '/inbox',
  () => '/',
  ({ id }) => `/threads/${id}`,
  ({ id }) => `/threads/${id}`,
  ({ id }) => `/threads/${id}`,
  ({ id }) => `/threads/${id}?view=tree`,
  ({ id }) => `/threads/${id}?view=timeline`,
  ({ id }) => `/threads/${id}?view=events`,
  ({ id }) => `/threads/${id}?select=CALL`,
  ({ id }) => `/threads/${id}?select=CALL&tab=evidence`,
  ({ id }) => `/threads/${id}?view=timeline&select=CALL`,
  ({ id }) => `/threads/${id}?at=12`,
  ({ id, parentId = id }) => `/threads/${parentId}`,
  ({ id, parentId = id }) => `/threads/${parentId}`,
  ({ id, parentId = id }) => `/threads/${parentId}?view=tree`,
  ({ id, parentId = id }) => `/threads/${id}?with=${parentId}`,
  () => '/agents',
  () => '/agents/desk',
  () => '/api/decide',
]

interface Pace {
  /** Lets time pass on the page. */
  wait(page: Page, ms: number): Promise<void>
  prepare(page: Page): Promise<void>
  /** Waits until the page shows what it loads, as a person who looks at it does. */
  look(page: Page): Promise<void>
  go(page: Page, address: string): Promise<void>
}

/** Opens an address. A link that a plan has opened may still be on its way, and would win. */
async function visit(page: Page, address: string): Promise<void> {
  for (let tries = 1; ; tries++)
    try {
      return void (await page.goto(address))
    } catch (error) {
      if (tries === 5 || !String(error).includes('interrupted by another navigation')) throw error
      await delay(500)
      if (page.url() === address) return
    }
}

const realTime: Pace = {
  wait: (_, ms) => (ms === 0 ? Promise.resolve() : delay(ms)),
  prepare: () => Promise.resolve(),
  async look(page) {
    const isShown = (): boolean =>
      document.querySelector('.skeleton, [data-choice=approve][aria-disabled]') === null
    // Some screens keep what is loading, or a button that is out of sight.
    await page.waitForFunction(isShown, undefined, { timeout: 4000 }).catch(() => undefined)
  },
  go: visit,
}

const fakeTime: Pace = {
  wait: async (page, ms) => {
    // Every frame of a long pause would cost real time; some frames at its beginning and its end are enough.
    if (ms > 100) await page.clock.fastForward(ms - 64)
    if (ms > 0) await page.clock.runFor(Math.min(ms, 64))
  },
  prepare: (page) => page.clock.install(),
  // The frames in which the page would be asked again come only when the clock runs.
  look: () => Promise.resolve(),
  async go(page, address) {
    if (!/\/studio\/(?!docs)/.test(page.url())) return visit(page, address)
    // What is open stays open for one more plan: Escape closes the uppermost dialog only.
    await page.keyboard.press('Escape')
    const move = (): Promise<boolean> =>
      page.evaluate((to) => {
        history.pushState(null, '', to)
        dispatchEvent(new PopStateEvent('popstate'))
        return document.querySelector('nav') !== null
      }, address)
    // A plan that pressed Enter on a link to the documentation may leave the page only now.
    if (!(await move().catch(() => false))) await visit(page, address)
  },
}

async function act(page: Page, action: Action): Promise<void> {
  if (action.type === 'key') {
    if (/^[a-z]{2,}$/.test(action.key)) await page.keyboard.type(action.key)
    else await page.keyboard.press(action.key)
    return
  }
  const [from, to] = [await middleOf(page, action.from), await middleOf(page, action.to)]
  if (!from || !to) return
  if (action.type === 'press') {
    await page.mouse.move(from.x, from.y)
    await page.mouse.down()
    if (action.from !== action.to) await page.mouse.move(to.x, to.y, { steps: 2 })
    return page.mouse.up()
  }
  const touch = await page.context().newCDPSession(page)
  const send = (type: 'touchStart' | 'touchMove' | 'touchEnd', touchPoints: (typeof from)[]) =>
    touch.send('Input.dispatchTouchEvent', { type, touchPoints })
  await send('touchStart', [from])
  if (action.from !== action.to) await send('touchMove', [to])
  await send('touchEnd', [])
  await touch.detach()
}

async function middleOf(page: Page, place: Place): Promise<{ x: number; y: number } | undefined> {
  const element = page.locator(PLACES[place]).first()
  if ((await element.count()) === 0) return undefined
  const box = await element.boundingBox({ timeout: 200 }).catch(() => null)
  return box ? { x: box.x + box.width / 2, y: box.y + box.height / 2 } : undefined
}

/** Starts a thread, or every second time a thread with a child, whose call waits. */
async function startWaiting(runtime: StudioKit['runtime'], isChild: boolean): Promise<Waiting> {
  const id = await waitingThread(runtime, 'refund for good', isChild ? 'front' : 'desk')
  if (!isChild) return { id, parentId: undefined }
  const [child] = await runtime.threads.list({ parentId: id })
  return { id: child!.id, parentId: id }
}

/** Plays plans on one page, and compares what was decided with what the trace of the page allows. */
async function playPlans(
  { open, runtime }: StudioKit,
  { seeds, pace }: { readonly seeds: readonly number[]; readonly pace: Pace },
): Promise<number> {
  let decided = 0
  let isChild = false
  let waiting = await startWaiting(runtime, isChild)
  const page = await open('/agents')
  await pace.prepare(page)
  const trace = await recordTrace(page)
  const origin = new URL(page.url()).origin
  await visit(page, 'about:blank')
  for (const seed of seeds) {
    const random = randomOf(seed)
    const [item] = await runtime.inbox.list()
    const screen = SCREENS[random(SCREENS.length)]!(waiting).replace('CALL', item!.toolCallId)
    const address = `${origin}/studio${screen}`
    await pace.go(page, address)
    const isLookedAt = random(3) > 0
    if (isLookedAt) {
      await page
        .locator('nav')
        .first()
        .waitFor({ timeout: 2000 })
        .catch(() => visit(page, address))
      await pace.look(page)
      await pace.wait(page, 900)
    }
    const plan = planOf(random)
    for (const { action, pauseMs } of plan) {
      await act(page, action)
      await pace.wait(page, pauseMs)
    }
    const isOpen = (await runtime.inbox.list()).some((one) => one.threadId === waiting.id)
    const decision = isOpen ? undefined : await decisionOf(runtime, waiting.id)
    if (decision !== undefined) {
      // What the page has noted last may still be on its way.
      await page.evaluate(() => 0).catch(() => 0)
      await delay(50)
      const why = `seed ${seed}: ${JSON.stringify(plan)}\n${JSON.stringify(trace)}`
      expect(isDecidedByRule(trace, { isForGood: decision === 'approve' }), why).toBe(true)
      decided += 1
    }
    if (!isOpen) {
      isChild = !isChild
      waiting = await startWaiting(runtime, isChild)
      await visit(page, 'about:blank')
      trace.length = 0
    }
  }
  await page.context().close()
  return decided
}

async function decisionOf(
  runtime: StudioKit['runtime'],
  threadId: string,
): Promise<string | undefined> {
  const events = await runtime.threads.events(threadId)
  return events.map(({ event }) => event).find((event) => event.type === 'interrupt_answered')
    ?.answer.type
}

/** A page that plays more plans than this grows until the browser ends it. */
const PLANS_OF_A_PAGE = 250

/** Plays the plans on several pages side by side, each with a server of its own. */
async function playAll(count: number, pace: Pace, pages: number): Promise<number> {
  let decided = 0
  let played = 0
  let next = 1
  const playNext = async (): Promise<void> => {
    const size = Math.min(PLANS_OF_A_PAGE, Math.ceil(count / pages))
    while (next <= count) {
      const first = next
      next += size
      const seeds = Array.from(
        { length: Math.min(size, count + 1 - first) },
        (_, place) => first + place,
      )
      const { agent, front } = refundDesk()
      await withStudio({ runtime: { agents: [agent, front] } }, async (kit) => {
        // Not `decided += await …`, which would forget what other pages have counted meanwhile.
        const count = await playPlans(kit, { seeds, pace })
        decided += count
      })
      played += seeds.length
      if (count > 1000) console.info(`${played} of ${count} sequences: ${decided} calls decided`)
    }
  }
  await Promise.all(Array.from({ length: pages }, playNext))
  return decided
}

test('300 random sequences of keys, presses and taps, in real time, decide only as the rule says', async () => {
  const decided = await playAll(300, realTime, 10)
  console.info(`300 sequences decided about ${decided} calls`)
  // The rule is reached often enough for the test to mean something.
  expect(decided).toBeGreaterThan(5)
}, 400_000)

test('10,000 random sequences of keys, presses and taps, by the clock of the page, decide only as the rule says', async ({
  skip,
}) => {
  skip(process.env['SKEIN_DEEP'] === undefined, 'only npm run test:deep plays 10,000 sequences')
  const decided = await playAll(10_000, fakeTime, 4)
  console.info(`10,000 sequences decided about ${decided} calls`)
  expect(decided).toBeGreaterThan(100)
}, 7_200_000)
