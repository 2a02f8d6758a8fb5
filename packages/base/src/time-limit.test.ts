import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { TimeLimitError, withTimeLimit } from './index.ts'

/** A timer that fires when the test says so. */
function handTimer(): {
  timer(ms: number, fire: () => void): () => void
  fire(): void
  isCancelled: boolean
  ms: number
} {
  const own = {
    isCancelled: false,
    ms: 0,
    fire: () => {},
    timer(ms: number, fire: () => void) {
      Object.assign(own, { ms, fire })
      return () => {
        own.isCancelled = true
      }
    },
  }
  return own
}

test('work in time gives its result, and the timer is cancelled', async () => {
  const hand = handTimer()
  const { timer } = hand
  expect(await withTimeLimit(async () => 'done', { limitMs: 5, timer })).toBe('done')
  expect(hand).toMatchObject({ ms: 5, isCancelled: true })
})

test('work that takes too long: its signal aborts, and the promise rejects with the same error', async () => {
  const hand = handTimer()
  let signal: AbortSignal | undefined
  const work = (own: AbortSignal): Promise<never> => {
    signal = own
    return new Promise(() => {})
  }
  const result = withTimeLimit(work, { limitMs: 5, timer: hand.timer })
  hand.fire()
  const error = await result.catch((cause: unknown) => cause)
  expect(error).toBeInstanceOf(TimeLimitError)
  expect(error).toMatchObject({ message: 'it took longer than 5 ms' })
  expect(signal?.reason).toBe(error)
})

test('the outer signal ends the wait with its reason, also if it has aborted before', async () => {
  const outer = new AbortController()
  const { timer } = handTimer()
  const wait = (): Promise<unknown> =>
    withTimeLimit(() => new Promise(() => {}), { limitMs: 5, signal: outer.signal, timer })
  const first = wait()
  outer.abort('stop')
  await expect(first).rejects.toBe('stop')
  await expect(wait()).rejects.toBe('stop')
})

test('work that throws immediately rejects, and the caller chooses the error of the limit', async () => {
  const hand = handTimer()
  const broken = (): never => {
    throw new Error('broken')
  }
  await expect(withTimeLimit(broken, { limitMs: 5, timer: hand.timer })).rejects.toThrow('broken')
  expect(hand.isCancelled).toBe(true)
  const toError = (ms: number): Error => new Error(`late after ${ms}`)
  const late = withTimeLimit(() => new Promise(() => {}), {
    limitMs: 5,
    timer: hand.timer,
    toError,
  })
  hand.fire()
  await expect(late).rejects.toThrow('late after 5')
})

test('work with a time limit leaves no listener behind', async () => {
  const outer = new AbortController().signal
  let given: AbortSignal | undefined
  const work = async (signal: AbortSignal): Promise<number> => {
    given = signal
    return 1
  }
  expect(await withTimeLimit(work, { limitMs: 1000, signal: outer })).toBe(1)
  expect([getEventListeners(given!, 'abort'), getEventListeners(outer, 'abort')]).toEqual([[], []])
})
