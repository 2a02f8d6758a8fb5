import { afterEach, expect, test } from 'vitest'
import { agent as makeAgent } from '@skein/agents'
import { calls, says, scripted } from '@skein/ai/testing'
import { NoEffectError } from '@skein/governance'
import { z } from 'zod'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  type RuntimeEvent,
} from '../index.ts'
import { threadView } from '../view/index.ts'

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const opened: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop()
})

type Options = Partial<Parameters<typeof defineTool>[0]> & {
  readonly ms?: number
  readonly obeys?: 'signal' | 'own error' | 'wrapped' | 'canceled' | 'no effect'
  readonly undoes?: boolean
  readonly isStrategy?: boolean
}

/** The errors with which a payment ends that notices its signal, by what it does. */
const endings = ({ reason }: AbortSignal): Record<NonNullable<Options['obeys']>, unknown> => ({
  signal: reason,
  'own error': new Error('The card was declined.'),
  // As clients of HTTP do.
  wrapped: new Error('Connection error.', { cause: new Error('fetch failed', { cause: reason }) }),
  'no effect': new NoEffectError('It was not sent.', { cause: reason }),
  canceled: Object.assign(new Error('canceled'), { name: 'CanceledError', code: 'ERR_CANCELED' }),
})

/** Runs a thread whose model makes two payments in one message, and stops it while the first one runs. */
async function stoppedInFirst(options: Options = {}) {
  const { ms = 60, obeys, undoes = false, isStrategy = false, ...governance } = options
  const world: string[] = []
  let start!: () => void
  const started = new Promise<void>((resolve) => (start = resolve))
  const undo = defineTool({
    name: 'undo',
    description: 'Undoes.',
    args: z.object({ n: z.number() }),
    risk: 'write_low_risk',
    execute: (_, { n }) => void world.push(`undo ${n}`),
  })
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    args: z.object({ n: z.number() }),
    risk: 'write_low_risk',
    ...(undoes && { rollback: { tool: 'undo', args: (args: unknown) => args } }),
    ...(governance as object),
    execute: async (_: unknown, { n }: { n: number }, { signal }: { signal: AbortSignal }) => {
      start()
      if (obeys)
        await new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(endings(signal)[obeys])),
        )
      await later(ms)
      world.push(`pay ${n}`)
      return `paid ${n}`
    },
  } as never)
  const model = scripted([[calls('pay', { n: 1 }), calls('pay', { n: 2 })], says('Ok.')])
  const prompt = definePrompt({ name: 'p', prompt: 'P.', model, tools: [pay, undo] })
  const sideA = isStrategy
    ? {
        agent: makeAgent({
          model,
          tools: [{ ...(pay as object), sequential: true }, undo] as never,
        }),
      }
    : { prompt }
  const agents = [defineAgent({ name: 'a', sideA } as never)]
  const runtime = await createRuntime({ agents, limits: { stopGraceMs: 100 } })
  opened.push(runtime)
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a' })
  const running = runtime.threads.run(id, 'go')
  await started
  const asked = performance.now()
  await runtime.threads.stop(id)
  const took = performance.now() - asked
  const whileStopping = (await runtime.threads.get(id)).lifecycle
  const { outcome } = await running
  await runtime.idle()
  const events = (await runtime.threads.events(id)).map(({ event }) => event)
  const ends = events.filter(
    (event): event is Extract<RuntimeEvent, { type: 'tool_execution_end' }> =>
      event.type === 'tool_execution_end',
  )
  return { runtime, id, world, ends, outcome, took, model, events, whileStopping }
}

const notRun = {
  outcome: 'interrupted',
  result: 'The user stopped the run. This call was not run.',
}

for (const isStrategy of [false, true])
  test(`a write that ends within the grace of a stop is kept, and the one behind it was not run (${isStrategy ? 'an agent()' : 'a prompt'})`, async () => {
    const { runtime, id, world, ends, outcome, took, model } = await stoppedInFirst({ isStrategy })
    expect(outcome).toBe('stopped')
    expect(took).toBeLessThan(50)
    expect(ends).toMatchObject([{ outcome: 'success', result: 'paid 1' }, notRun])
    expect(world).toEqual(['pay 1'])
    await runtime.threads.run(id, 'and now?')
    const told = JSON.stringify(model.requests.at(-1)!.messages)
    expect(told).toContain('paid 1')
    expect(told).toContain('This call was not run')
    expect(world).toEqual(['pay 1'])
  })

test('while a write may still end, the thread is stopping', async () => {
  const { events, whileStopping, runtime, id } = await stoppedInFirst()
  expect(whileStopping).toBe('stopping')
  const statuses = events.flatMap((event) => (event.type === 'status_changed' ? event.status : []))
  expect(statuses).toEqual(['running', 'stopping', 'stopped'])
  expect((await runtime.threads.get(id)).lifecycle).toBe('stopped')
  const until = events.findIndex(
    (event) => event.type === 'status_changed' && event.status === 'stopping',
  )
  const log = events.map((event, place) => ({ seq: place + 1, event }))
  expect(threadView(log, { upTo: until + 1 }).status).toBe('stopping')
})

test('a write that does not end within the grace of a stop is unknown', async () => {
  const { world, ends } = await stoppedInFirst({ ms: 300 })
  expect(ends).toMatchObject([
    { outcome: 'unknown', result: expect.stringContaining('find out before you call it again') },
    notRun,
  ])
  await later(350)
  expect(world).toEqual(['pay 1'])
})

test('a probe settles a write that does not end within the grace of a stop', async () => {
  const { ends } = await stoppedInFirst({ ms: 300, probe: () => true } as never)
  expect(ends).toMatchObject([
    { outcome: 'success', result: expect.stringContaining('took effect, but a person stopped') },
    notRun,
  ])
})

test('whether a write that obeys its signal took effect is unknown: it may have done a part', async () => {
  const { world, ends } = await stoppedInFirst({ obeys: 'signal' })
  const result = expect.stringContaining('Whether it took effect is unknown')
  expect(ends).toMatchObject([{ outcome: 'unknown', result }, notRun])
  expect(world).toEqual([])
})

test.each(['wrapped', 'canceled'] as const)(
  'whether a write whose client says in its own words that it was aborted took effect is unknown: %s',
  async (obeys) => {
    const { ends } = await stoppedInFirst({ obeys })
    const result = expect.stringContaining('Whether it took effect is unknown')
    expect(ends).toMatchObject([{ outcome: 'unknown', result }, notRun])
  },
)

test('a probe settles a write that has obeyed its signal, also if it had no effect', async () => {
  const { ends } = await stoppedInFirst({ obeys: 'signal', probe: () => false } as never)
  const result = expect.stringContaining('had no effect')
  expect(ends).toMatchObject([{ outcome: 'failed', result }, notRun])
})

test('a write that knows that it did nothing says so, also if its signal was the cause', async () => {
  const { ends } = await stoppedInFirst({ obeys: 'no effect' })
  expect(ends).toMatchObject([{ outcome: 'failed', result: 'It was not sent.' }, notRun])
})

test('an error of its own with which a write ends in the grace is its result', async () => {
  const { ends } = await stoppedInFirst({ obeys: 'own error' })
  expect(ends).toMatchObject([{ outcome: 'failed', result: 'The card was declined.' }, notRun])
})

test('a read that runs when a person stops the thread is dropped', async () => {
  const { ends } = await stoppedInFirst({ risk: 'read_only', ms: 300 })
  const result = 'The user stopped the run. This call has no result.'
  expect(ends[0]).toMatchObject({ outcome: 'interrupted', result })
})

test('a write is undone after it has happened, not before', async () => {
  const { world, ends } = await stoppedInFirst({ undoes: true })
  expect(ends[0]).toMatchObject({ outcome: 'success' })
  expect(world).toEqual(['pay 1', 'undo 1'])
})

/** Runs a thread whose model makes one call, and stops it when the call waits. Returns what the model is told of the call. */
async function stoppedWhileWaiting(
  tools: readonly object[],
  call: Parameters<typeof calls>,
): Promise<{ readonly outcome: string; readonly result: unknown; readonly told: string }> {
  const model = scripted([calls(...call), says('Ok.')])
  const prompt = definePrompt({ name: 'p', prompt: 'P.', model, tools: tools as never })
  const runtime = await createRuntime({ agents: [defineAgent({ name: 'a', sideA: { prompt } })] })
  opened.push(runtime)
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a' })
  const events = async () => (await runtime.threads.events(id)).map(({ event }) => event)
  const running = runtime.threads.run(id, 'go')
  for (let n = 0; n < 300 && !(await events()).some(({ type }) => type === 'interrupt_opened'); n++)
    await later(10)
  await runtime.threads.stop(id)
  await running
  await runtime.threads.run(id, 'and now?')
  const end = (await events()).find((event) => event.type === 'tool_execution_end')!
  return { ...end, told: JSON.stringify(model.requests.at(-1)!.messages) }
}

test('of a subagent that has not answered, the model learns that it may have done something', async () => {
  const finish = defineTool({
    name: 'finish',
    description: 'Ends.',
    risk: 'read_only',
    execute: () => 'ended',
  })
  const slow = defineTool({
    name: 'slow',
    description: 'Writes.',
    risk: 'write_low_risk',
    execute: () => later(60),
  })
  const promptOf = (name: string, step: ReturnType<typeof calls>, tool: object) =>
    definePrompt({ name, prompt: '', model: scripted(() => step), tools: [tool as never] })
  const child = defineAgent({
    name: 'crew',
    type: 'dual_ai',
    exposeAsTool: true,
    toolDescription: 'Works.',
    sideA: { prompt: promptOf('c', calls('slow', {}), slow) },
    sideB: { prompt: promptOf('d', calls('finish', {}), finish), sessionStop: { name: 'finish' } },
  })
  const { outcome, result, told } = await stoppedWhileWaiting(
    [{ name: child }],
    ['crew', { message: 'work' }],
  )
  expect(outcome).toBe('interrupted')
  expect(result).toMatch(/^The user stopped the run\. The subagent .* may have done a part/)
  expect(told).toContain('may have done a part')
})

test('whether a tool ran at the client that has not answered is unknown', async () => {
  const show = defineTool({ name: 'show', description: 'Shows.', risk: 'read_only' })
  const { outcome, result, told } = await stoppedWhileWaiting([show], ['show', {}])
  expect(outcome).toBe('unknown')
  expect(result).toContain('The user stopped the run. Whether this call took effect is unknown')
  expect(told).toContain('Whether this call took effect is unknown')
})
