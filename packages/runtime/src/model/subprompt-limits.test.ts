import { calls, says, scripted, stops, type ScriptFunction } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { afterEach, expect, test } from 'vitest'
import {
  createRuntime,
  defineAgent,
  defineModel,
  definePrompt,
  memoryStore,
  type EmbeddedRuntime,
  type RuntimeOptions,
} from '@skein/runtime'
import { manualTimers } from '../testing/simulation.ts'

const HOUR = 3_600_000

const running: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of running.splice(0)) await runtime.stop({ graceMs: 0 })
})

const usage = { usage: { inputTokens: 100, outputTokens: 10, totalTokens: 110 } }

/** Lets an agent call a prompt with these models, in virtual time; its answer is the result of the call. */
async function ask(models: readonly ScriptFunction[], options: Partial<RuntimeOptions>) {
  const clock = manualClock(Date.parse('2026-01-01T00:00:00.000Z'))
  const timers = manualTimers(clock)
  const [model, ...fallbacks] = models.map((script) => scripted(script))
  const mood = definePrompt({
    name: 'mood',
    prompt: 'Tell the mood.',
    toolDescription: 'Tells the mood of a text.',
    model: defineModel({ name: 'moods', model: model!, fallbacks }),
  })
  const desk = scripted(({ messages }) => {
    const last = messages.at(-1)
    const results = last?.type === 'tool_result' ? last.results : undefined
    const part = results ? says(String(results[0]!.result)) : calls('mood', { text: 'Hurray!' })
    return [part, stops(undefined, usage)]
  })
  const prompt = definePrompt({ name: 'desk', prompt: 'Help.', model: desk, tools: [mood] })
  const agents = [defineAgent({ name: 'desk', sideA: { prompt } })]
  const store = memoryStore({ clock })
  const kept = { keepsSecretKeyWithData: true }
  const runtime = await createRuntime({ agents, store, clock, timers, ...kept, ...options })
  running.push(runtime)
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'desk', tenant: 'acme', message: 'Hello' })
  await timers.advance(0) // the prompt is asked
  const logs = async () =>
    (await runtime.threads.logs(id)).filter((one) => one.prompt === 'mood').map((one) => one.error)
  const answer = async () => (await runtime.threads.messages(id)).at(-1)?.message.text
  return { runtime, timers, id, logs, answer }
}

const fine: ScriptFunction = () => [says('Good.'), stops(undefined, usage)]
/** A model that ignores the signal: it never answers. */
const silent: ScriptFunction = () => new Promise(() => {})

test('a prompt that is used as a tool counts for the limits of spending', async () => {
  const spending = [{ per: 'tenant', periodMs: HOUR, maxInferences: 10 }] as const
  const { runtime, answer } = await ask([fine], { spending })
  expect(await answer()).toBe('Good.')
  expect((await runtime.limits.report({ tenant: 'acme' })).spending).toMatchObject([
    { spent: { inferences: 3, tokens: 330 }, reserved: { inferences: 0, tokens: 0 } },
  ])
})

test('a limit of spending refuses the prompt once, whatever models it has; the thread waits', async () => {
  let asked = 0
  const counted: ScriptFunction = () => (asked++, says('Good.'))
  const spending = [{ per: 'tenant', periodMs: HOUR, maxInferences: 1 }] as const
  const { runtime, timers, id, logs, answer } = await ask([counted, counted], { spending })
  const { lifecycle } = await runtime.threads.get(id)
  const { delayed } = (await runtime.limits.report()).spending[0]!
  // One of the two that are delayed is the call, the other one the next step of the thread.
  expect({ asked, lifecycle, delayed, logs: await logs() }).toEqual({
    asked: 0,
    lifecycle: 'waiting',
    delayed: 2,
    logs: [],
  })
  await timers.advance(HOUR)
  expect(await answer()).toContain(
    'The prompt "mood" was not asked: The tenant "acme" may use 1 requests of models until 2026-01-01T01:00:00.000Z.',
  )
})

test('a prompt whose model sends nothing is cut after modelIdleMs; its fallback is asked', async () => {
  const { timers, logs, answer } = await ask([silent, fine], { limits: { modelIdleMs: 1_000 } })
  await timers.advance(999)
  expect(await logs()).toEqual([])
  await timers.advance(1)
  expect(await answer()).toBe('Good.')
  expect(await logs()).toMatchObject([
    { code: 'TIMEOUT', message: 'The model sent nothing for 1000 ms.' },
    undefined,
  ])
  expect(timers.pending()).toEqual([])
})

test('a prompt that is not done after modelMs is an error of its call', async () => {
  const { timers, answer } = await ask([silent], { limits: { modelMs: 5_000 } })
  await timers.advance(5_000)
  expect(await answer()).toBe('The model was not done after 5000 ms.')
  expect(timers.pending()).toEqual([])
})
