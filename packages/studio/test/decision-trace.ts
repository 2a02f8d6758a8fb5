import type { Page } from 'playwright-core'

/** What a page has seen of keys, focus, presses and buttons; times in ms of the page's clock. */
export interface Seen {
  readonly type: 'load' | 'key' | 'focus' | 'blur' | 'down' | 'click' | 'place' | 'gone'
  readonly at: number
  /**
   * The button that the event is about, if it decides: `confirm` for the second confirmation of a call, `decide` for all
   * others, and a number, because the same place may have another button later.
   */
  readonly button?: string
  readonly key?: string
  readonly isRepeat?: boolean
}

/**
 * Records what happens on the page from its first script on, with nothing of Studio's own code. Returns the trace, which
 * grows while the page is used.
 */
export async function recordTrace(page: Page): Promise<Seen[]> {
  const trace: Seen[] = []
  await page.exposeFunction('noteForTest', (one: Seen) => void trace.push(one))
  await page.addInitScript(() => {
    const { noteForTest } = globalThis as unknown as { noteForTest(one: object): void }
    const seen = { push: (one: object) => noteForTest(one) }
    seen.push({ type: 'load', at: performance.now() })
    const places = new Map<Element, readonly number[]>()
    const numbers = new WeakMap<Element, number>()
    let count = 0
    const nameOf = (target: EventTarget | null): string | undefined => {
      const button =
        target instanceof Element ? target.closest<HTMLElement>('[data-decision]') : null
      if (!button) return undefined
      if (!numbers.has(button)) numbers.set(button, ++count)
      const kind = button.dataset['choice'] === 'confirm' ? 'confirm' : 'decide'
      return `${kind} ${numbers.get(button)}`
    }
    const look = (): void => {
      const now = new Set(document.querySelectorAll('[data-decision]'))
      for (const element of places.keys())
        if (!now.has(element)) {
          seen.push({ type: 'gone', at: performance.now(), button: nameOf(element) })
          places.delete(element)
        }
      for (const element of now) {
        const { left, top, right, bottom } = element.getBoundingClientRect()
        const place = [left, top, right, bottom]
        const before = places.get(element)
        // Less than a pixel and a half is not seen to move.
        if (before?.every((edge, index) => Math.abs(edge - place[index]!) < 1.5)) continue
        places.set(element, place)
        seen.push({ type: 'place', at: performance.now(), button: nameOf(element) })
      }
    }
    const poll = (): void => {
      look()
      requestAnimationFrame(poll)
    }
    poll()
    const on = (name: string, note: (event: never) => object): void =>
      addEventListener(
        name,
        (event) => {
          look()
          const button = nameOf(event.target)
          seen.push({ at: performance.now(), button, ...note(event as never) })
        },
        { capture: true },
      )
    on('keydown', (event: KeyboardEvent) => ({
      type: 'key',
      key: event.key,
      isRepeat: event.repeat,
    }))
    on('focusin', () => ({ type: 'focus' }))
    on('focusout', () => ({ type: 'blur' }))
    on('pointerdown', () => ({ type: 'down' }))
    on('click', () => ({ type: 'click' }))
  })
  return trace
}

/**
 * How long something has to stay as it is before it decides. The page and the trace read their clocks one after the other
 * (`READ_MS`), and the trace sees a button move only with the next frame (`FRAME_MS`).
 */
const STAY_MS = 700
const READ_MS = 10
const FRAME_MS = 50

/**
 * Whether a trace contains what decides by the rule: first about the call and then, if it is approved and cannot be
 * undone (`isForGood`), its confirmation.
 */
export function isDecidedByRule(
  whole: readonly Seen[],
  { isForGood }: { readonly isForGood: boolean },
): boolean {
  // Each document has its own clock, and nothing of one counts in the next.
  const trace = whole.slice(whole.findLastIndex(({ type }) => type === 'load') + 1)
  if (trace.length < whole.length) {
    const earlier = whole.slice(0, whole.length - trace.length - 1)
    if (isDecidedByRule(earlier, { isForGood })) return true
  }
  const first = trace.findIndex((_, index) => isDecision(trace, index, 'decide'))
  if (first < 0 || !isForGood) return first >= 0
  return trace.some((_, index) => index > first && isDecision(trace, index, 'confirm'))
}

function isDecision(trace: readonly Seen[], index: number, kind: 'decide' | 'confirm'): boolean {
  const event = trace[index]!
  const { button } = event
  if (button?.startsWith(kind) !== true) return false
  const past = trace.slice(0, index)
  if (event.type === 'key') {
    if (!/^(?:Enter| )$/.test(event.key ?? '') || event.isRepeat === true) return false
    const focus = past.findLastIndex(({ type }) => type === 'focus' || type === 'blur')
    const since = past[focus]
    if (since?.type !== 'focus' || since.button !== button) return false
    // An Enter that came too early leaves the focus, and the time begins again.
    const keys = past.slice(focus).filter(({ type }) => type === 'key')
    const isOther = keys.some(({ key = '' }) => !/^(?:Enter| )$/.test(key))
    return !isOther && [since, ...keys].every(({ at }) => event.at - at >= STAY_MS - READ_MS)
  }
  if (event.type !== 'click') return false
  const down = past.findLast(({ type }) => type === 'down')
  if (!down || down.button !== button) return false
  const placed = past.findLast((one) => one.type === 'place' && one.button === button)
  return placed !== undefined && down.at - placed.at >= STAY_MS - FRAME_MS
}
