import { says, scripted, type ScriptFunction } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { afterEach, expect, test } from 'vitest'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  memoryStore,
  type EmbeddedRuntime,
  type PromptDefinition,
  type RuntimeOptions,
} from '@skein/runtime'
import { manualTimers } from '../testing/simulation.ts'

const running: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of running.splice(0)) await runtime.stop({ graceMs: 0 })
})

/** Sends a message to a model in virtual time. */
async function ask(
  model: ScriptFunction,
  limits?: RuntimeOptions['limits'],
  settings?: Pick<PromptDefinition, 'compaction'>,
) {
  const clock = manualClock(Date.parse('2026-01-01T00:00:00.000Z'))
  const timers = manualTimers(clock)
  const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model: scripted(model), ...settings })
  const agents = [defineAgent({ name: 'solo', sideA: { prompt } })]
  const store = memoryStore({ clock })
  const options = { agents, store, clock, timers, limits, keepsSecretKeyWithData: true }
  const runtime = await createRuntime(options)
  running.push(runtime)
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'solo', message: 'Hello' })
  await timers.advance(0) // the model is asked
  const failures = async () =>
    (await runtime.threads.events(id)).flatMap(({ event }) =>
      event.type === 'step_failed' ? [event] : [],
    )
  const texts = async () => (await runtime.threads.messages(id)).map(({ message }) => message.text)
  return { runtime, timers, clock, id, failures, texts }
}

/** A model that ignores the signal: it never answers. */
const silent = (): Promise<never> => new Promise(() => {})

test('a model that sends nothing is cut after modelIdleMs, and asked again', async () => {
  const { timers, failures, texts } = await ask((_, index) =>
    index === 0 ? silent() : says('Here.'),
  )
  await timers.advance(10 * 60_000 - 1)
  expect(await failures()).toEqual([])
  await timers.advance(2)
  expect(await failures()).toMatchObject([
    { code: 'TIMEOUT', message: 'The model sent nothing for 600000 ms.', attempt: 1 },
  ])
  await timers.advance(1_000)
  expect(await texts()).toEqual(['Hello', 'Here.'])
})

test('a model that stays silent fails the session after modelAttempts', async () => {
  const limits = { modelIdleMs: 1_000, modelAttempts: 2 }
  const { timers, failures, runtime, id } = await ask(silent, limits)
  await timers.advance(60_000)
  expect(await failures()).toHaveLength(2)
  expect((await runtime.threads.get(id)).lifecycle).toBe('failed')
})

test('a model that sends something now and then is cut after modelMs', async () => {
  let isDone = false
  const limits = { modelIdleMs: 1_000, modelMs: 5_000, modelAttempts: 1 }
  const kit = await ask(
    (request) => [
      ...Array.from({ length: 20 }, () => [says('.'), { do: 'wait', ms: 20 } as const]).flat(),
      { do: 'stop', usage: { outputTokens: request.messages.length } },
    ],
    limits,
  )
  // The scripted model waits in real time; each of its parts takes 400 ms of virtual time.
  while (!isDone && kit.clock.now() < Date.parse('2026-01-01T00:00:30.000Z')) {
    await kit.timers.advance(400)
    await new Promise((resolve) => setTimeout(resolve, 25))
    isDone = (await kit.failures()).length > 0
  }
  expect(await kit.failures()).toMatchObject([
    { code: 'TIMEOUT', message: 'The model was not done after 5000 ms.' },
  ])
})

test('an answer in time is not cut later, and leaves no timer behind', async () => {
  const { timers, failures, texts } = await ask(() => says('Here.'), { modelIdleMs: 1_000 })
  await timers.advance(500)
  expect(await texts()).toEqual(['Hello', 'Here.'])
  expect(timers.pending()).toEqual([])
  await timers.advance(60_000)
  expect(await failures()).toEqual([])
})

test('a summary that takes too long is cut after modelMs by the timers of the runtime, which keep none', async () => {
  let summaries = 0
  const compaction = { maxTokens: 1, keepMessages: 1 }
  const kit = await ask(
    ({ messages }) => {
      if (!JSON.stringify(messages).includes('too long to be sent again')) return says('Here.')
      return ++summaries === 1 ? silent() : says('They greeted.')
    },
    { modelMs: 5_000 },
    { compaction },
  )
  const { runtime, timers, id } = kit
  await timers.advance(0)
  await runtime.threads.send(id, 'Again')
  await timers.advance(0) // the summary is asked for
  await timers.advance(4_999)
  expect(summaries).toBe(1)
  const failed = async () =>
    (await runtime.threads.events(id)).flatMap(({ event }) =>
      event.type === 'error_raised' ? [event.code] : [],
    )
  expect(await failed()).toEqual([])
  await timers.advance(1)
  expect(await failed()).toEqual(['COMPACTION_FAILED'])
  await runtime.threads.send(id, 'And again')
  await timers.advance(0)
  expect(summaries).toBe(2)
  expect(await kit.texts()).toEqual(['Hello', 'Here.', 'Again', 'Here.', 'And again', 'Here.'])
  expect(timers.pending()).toEqual([])
})
