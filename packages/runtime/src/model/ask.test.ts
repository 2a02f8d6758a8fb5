import { expect, test } from 'vitest'
import openai from '@skein/ai/openai'
import { says, vendorServer } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { defineAgent } from '../definitions/define-agent.ts'
import { defineModel, definePrompt } from '../definitions/define.ts'
import { createRuntime } from '../runtime.ts'
import { manualTimers } from '../testing/simulation.ts'

const START = Date.UTC(2026, 0, 1)
const date = (seconds: number): string => new Date(START + seconds * 1000).toUTCString()

/** A thread whose vendor answers every request with 429 and this header, until nothing is due. */
async function run(retryAfter: string | undefined, failures = Infinity) {
  const clock = manualClock(START)
  const timers = manualTimers(clock)
  const errors: unknown[] = []
  const headers: Record<string, string> =
    retryAfter === undefined ? {} : { 'retry-after': retryAfter }
  const fault = {
    kind: 'error',
    code: 'RATE_LIMITED',
    status: 429,
    message: 'Too busy.',
    headers,
  } as const
  const server = vendorServer([says('Hello.')], {
    faults: (_, index) => (index < failures ? fault : undefined),
    clock,
  })
  const model = defineModel({
    name: 'vendor',
    model: openai('gpt-5', { api: 'chat' }),
    config: { apiKey: 'k', fetch: server.fetch },
  })
  const prompt = definePrompt({ name: 'p', model, prompt: '' })
  const agent = defineAgent({ name: 'a', sideA: { prompt } })
  const onError = (error: unknown): void => void errors.push(error)
  const runtime = await createRuntime({ agents: [agent], clock, timers, onError })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a', message: 'hi' })
  await runtime.idle()
  const waits: { lifecycle: string; ms: number; text: string | undefined }[] = []
  for (let look = 0; look < 20; look++) {
    const { lifecycle, wakeAt } = await runtime.threads.get(id)
    if (wakeAt === null) break
    const log = await runtime.threads.events(id)
    const status = log.map(({ event }) => event).findLast(({ type }) => type === 'status_changed')
    const text = status?.type === 'status_changed' ? status.text : undefined
    const ms = Date.parse(wakeAt) - clock.now()
    waits.push({ lifecycle, ms, text })
    await timers.advance(ms)
    await runtime.idle()
  }
  const result = await runtime.threads.settled(id)
  const thread = await runtime.threads.get(id)
  await runtime.stop()
  return { requests: server.requests.length, waits, result, thread, errors }
}

test.each([
  ['absent', undefined, [1_000, 2_000, 4_000]],
  ['0', '0', [1_000, 2_000, 4_000]],
  ['1', '1', [1_000, 2_000, 4_000]],
  ['59', '59', [59_000, 59_000, 59_000]],
  ['60', '60', [60_000, 60_000, 60_000]],
  ['61', '61', [61_000, 61_000, 61_000]],
  ['900', '900', [900_000, 900_000, 900_000]],
  ['901', '901', []],
  ['86400', '86400', []],
  ['31536000', '31536000', []],
  ['99999999999999', '99999999999999', []],
  ['-1', '-1', [1_000, 2_000, 4_000]],
  ['1.5', '1.5', [1_500, 2_000, 4_000]],
  ['a date in the past', date(-3600), [1_000, 2_000, 4_000]],
  ['a date far in the future', date(400 * 24 * 3600), []],
  ['garbage', 'soon, perhaps', [1_000, 2_000, 4_000]],
] as const)('Retry-After %s: bounded requests, and no drain throws', async (_, header, waits) => {
  const ran = await run(header)
  expect(ran.errors).toEqual([])
  expect(ran.waits.map(({ ms }) => ms)).toEqual(waits)
  expect(ran.requests).toBe(waits.length + 1)
  expect(ran.result).toMatchObject({ outcome: 'failed', reason: 'model_error' })
  expect(ran.result.text).toContain('Too busy.')
  for (const { lifecycle, ms, text } of ran.waits) {
    expect(lifecycle).toBe(ms > 60_000 ? 'waiting' : 'running')
    expect(text).toMatch(/^Waits until 2026-01-01T.*Z to ask the model again: .*Too busy\./)
  }
})

test('a thread that waited for its vendor runs again, and says so', async () => {
  const { requests, waits, result, thread } = await run('300', 1)
  expect(requests).toBe(2)
  expect(waits).toMatchObject([{ lifecycle: 'waiting', ms: 300_000 }])
  expect(result).toMatchObject({ outcome: 'completed', text: 'Hello.' })
  expect(thread.lifecycle).toBe('idle')
})
