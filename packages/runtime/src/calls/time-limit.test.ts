import { expect, test } from 'vitest'
import { agent, AgentState } from '@skein/agents'
import { llm, tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'
import {
  createRuntime,
  defineAgent,
  defineEffect,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  type RuntimeEvent,
} from '../index.ts'

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function until<T>(find: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let n = 0; n < 300; n++) {
    const found = await find()
    if (found !== undefined) return found
    await later(10)
  }
  throw new Error('It did not happen in time.')
}

type Governance = Partial<Parameters<typeof defineTool>[0]>

/** Runs a thread whose model calls a write until it is told what the write did. */
async function withWrite<T>(
  {
    ms,
    governance = {},
    taskClass = false,
  }: { readonly ms: number; readonly governance?: Governance; readonly taskClass?: boolean },
  use: (it: {
    runtime: EmbeddedRuntime
    id: string
    world: string[]
    model: ReturnType<typeof scripted>
    events(): Promise<RuntimeEvent[]>
  }) => Promise<T>,
): Promise<T> {
  const world: string[] = []
  const write = defineTool({
    name: 'write',
    description: 'Writes.',
    args: z.object({}),
    risk: 'write_low_risk',
    timeoutMs: 30,
    execute: async () => {
      await later(ms)
      world.push('write')
      return 'written'
    },
    ...(governance as object),
  })
  const model = scripted(({ messages }) => {
    const last = JSON.stringify(messages.at(-1))
    const mayTryAgain = last.includes('and was stopped')
    return messages.length === 1 || mayTryAgain ? calls('write', {}) : says('Done.')
  })
  const prompt = definePrompt({ name: 'p', prompt: 'P.', model, tools: [write] })
  const rules = { name: 'r', needs: [], verifiers: [], acceptInDoubt: true }
  const support = defineAgent({
    name: 'support',
    sideA: { prompt },
    ...(taskClass && { taskClass: rules }),
  })
  const runtime = await createRuntime({
    agents: [support],
    limits: { stopGraceMs: 60 },
  })
  await runtime.start()
  try {
    const { id } = await runtime.threads.create({ agent: 'support' })
    const events = async (): Promise<RuntimeEvent[]> =>
      (await runtime.threads.events(id)).map(({ event }) => event)
    return await use({ runtime, id, world, model, events })
  } finally {
    await runtime.stop()
  }
}

const isQuestion = (
  event: RuntimeEvent,
): event is Extract<RuntimeEvent, { type: 'interrupt_opened' }> =>
  event.type === 'interrupt_opened' && event.interrupt.kind === 'in_doubt'

const endOf = (events: readonly RuntimeEvent[]) =>
  events.find(({ type }) => type === 'tool_execution_end')

for (const taskClass of [false, true])
  test(`a write that outlasts its limit and its grace is unknown, and happens once (${taskClass ? 'with' : 'without'} a task class)`, async () => {
    await withWrite({ ms: 200, taskClass }, async ({ runtime, id, world, events, model }) => {
      expect(await runtime.threads.run(id, 'go')).toMatchObject({ outcome: 'completed' })
      expect(endOf(await events())).toMatchObject({
        outcome: 'unknown',
        result: expect.stringContaining('find out before you call it again'),
      })
      expect(JSON.stringify(model.requests.at(-1)!.messages)).toContain('effect is unknown')
      await later(250)
      expect(world).toEqual(['write'])
    })
  })

test('the result of a write that ends within the grace is kept', async () => {
  await withWrite({ ms: 60 }, async ({ runtime, id, world, events }) => {
    await runtime.threads.run(id, 'go')
    expect(endOf(await events())).toMatchObject({ outcome: 'success', result: 'written' })
    expect(world).toEqual(['write'])
  })
})

test('the result of a write that blocks its process beyond the limit is kept', async () => {
  const execute = (): string => {
    const until = performance.now() + 60
    while (performance.now() < until);
    return 'written'
  }
  const kinds = [{}, { taskClass: true }, { raises: true }]
  for (const { taskClass = false, raises = false } of kinds as {
    taskClass?: true
    raises?: true
  }[])
    await withWrite(
      {
        ms: 0,
        taskClass,
        governance: { execute, ...(raises && { raise: () => 'write_low_risk' }) } as never,
      },
      async ({ runtime, id, events }) => {
        expect(await runtime.threads.run(id, 'go')).toMatchObject({ outcome: 'completed' })
        expect(endOf(await events())).toMatchObject({ outcome: 'success', result: 'written' })
      },
    )
})

test('an idempotent write that outlasts its limit may run again', async () => {
  await withWrite({ ms: 200, governance: { idempotent: true } }, async ({ events, ...it }) => {
    const running = it.runtime.threads.run(it.id, 'go')
    await until(() => (it.model.requests.length > 1 ? true : undefined))
    await it.runtime.threads.stop(it.id)
    await running
    expect(endOf(await events())).toMatchObject({ outcome: 'failed' })
  })
})

test('a probe that finds the effect settles a write that outlasts its limit', async () => {
  const governance = { probe: () => true }
  await withWrite({ ms: 200, governance }, async ({ runtime, id, events }) => {
    await runtime.threads.run(id, 'go')
    expect(endOf(await events())).toMatchObject({
      outcome: 'success',
      result: expect.stringContaining('took effect'),
    })
  })
})

test('a probe that finds nothing does not start a write again that still runs', async () => {
  const governance = { probe: () => false }
  await withWrite({ ms: 200, governance }, async ({ runtime, id, events, world }) => {
    await runtime.threads.run(id, 'go')
    expect(endOf(await events())).toMatchObject({ outcome: 'unknown' })
    await later(250)
    expect(world).toEqual(['write'])
  })
})

test('a person decides about a high-risk write that outlasts its limit', async () => {
  const governance: Governance = { risk: 'write_high_risk', rollback: 'impossible' } as never
  await withWrite({ ms: 700, governance }, async ({ runtime, id, events, world }) => {
    const { waiting = [] } = await runtime.threads.run(id, 'go')
    for (const one of waiting)
      if (one.kind === 'approval')
        await runtime.inbox.approve({ ...one, by: 'ann', digest: one.request!.digest })
    const asked = await until(async () => (await events()).findLast(isQuestion))
    expect(asked).toMatchObject({
      interrupt: { kind: 'in_doubt', request: { type: 'in_doubt', cutOff: 'time_limit' } },
    })
    const item = { threadId: id, interruptId: asked.interrupt.id, by: 'ann' }
    await runtime.inbox.settle(item, 'applied')
    const ended = await until(async () => endOf(await events()))
    expect(ended).toMatchObject({
      outcome: 'success',
      result: expect.stringContaining('longer than its time limit'),
    })
    await later(700)
    expect(world).toEqual(['write'])
  })
})

test('llm() and agent() report a write that outlasts its limit as unknown', async () => {
  const write = tool({
    name: 'write',
    description: 'Writes.',
    parameters: z.object({}),
    timeoutMs: 10,
    run: () => later(500),
  })
  const options = { tools: [write], toolStrategy: { stopGraceMs: 20 } }
  const script = () => scripted([calls('write', {}), says('Done.')])
  const turn = await llm({ model: script(), ...options }).generate('go')
  expect(turn.toolExecutions).toMatchObject([{ toolName: 'write', isUnknown: true }])
  const run = await agent({ model: script(), ...options }).generate('go', AgentState.initial())
  expect(run.turn.toolExecutions).toMatchObject([{ toolName: 'write', isUnknown: true }])
})

async function chargeWith(
  options: object,
  // Long after the limit and the grace, also on a busy machine.
  ms = 500,
): Promise<{ world: string[]; ended: RuntimeEvent[] }> {
  const world: string[] = []
  const charge = defineEffect({
    name: 'charge',
    args: z.object({}),
    timeoutMs: 30,
    retry: { attempts: 3, backoffMs: 10 },
    execute: async () => {
      await later(ms)
      world.push('charge')
    },
    ...options,
  })
  const prompt = definePrompt({ name: 'p', prompt: 'P.', model: scripted(() => says('Yes.')) })
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'a', sideA: { prompt } })],
    effects: [charge],
    limits: { stopGraceMs: 60 },
    onError: () => {},
  })
  await runtime.start()
  try {
    const { id } = await runtime.threads.create({ agent: 'a' })
    await runtime.threads.effects.schedule(id, 'charge', {}, 0)
    const ended = async (): Promise<RuntimeEvent[]> =>
      (await runtime.threads.events(id))
        .map(({ event }) => event)
        .filter(({ type }) => type === 'effect_ended')
    await until(async () => ((await ended()).length > 0 ? true : undefined))
    await later(600)
    return { world, ended: await ended() }
  } finally {
    await runtime.stop()
  }
}

test.each([{ idempotent: false }, {}])(
  'an effect that is not declared idempotent is not repeated after its time limit: %o',
  async (options) => {
    const { world, ended } = await chargeWith(options)
    expect(ended).toMatchObject([{ outcome: 'unknown' }])
    expect(world).toEqual(['charge'])
  },
)

test('nor is one whose client says in its own words that its request was aborted', async () => {
  const world: string[] = []
  const execute = (_: unknown, __: unknown, { signal }: { readonly signal: AbortSignal }) =>
    new Promise<void>((_resolve, reject) => {
      world.push('request')
      signal.addEventListener('abort', () =>
        reject(new Error('Connection error.', { cause: signal.reason })),
      )
    })
  const { ended } = await chargeWith({ execute })
  expect(ended).toMatchObject([{ outcome: 'unknown' }])
  expect(world).toEqual(['request'])
})

test('one that fails is tried again as `retry` says, idempotent or not', async () => {
  const world: string[] = []
  const execute = (): void => {
    world.push('failed')
    throw new Error('The card was declined.')
  }
  await chargeWith({ execute })
  expect(world).toHaveLength(3)
})

test('an effect that is not idempotent is done if it ends within the grace', async () => {
  const { world, ended } = await chargeWith({ idempotent: false }, 60)
  expect(ended).toMatchObject([{ outcome: 'done' }])
  expect(world).toEqual(['charge'])
})

test('an idempotent effect is tried again after its time limit', async () => {
  const { ended } = await chargeWith({ idempotent: true })
  expect(ended).toMatchObject([{ outcome: 'failed' }, { outcome: 'failed' }, { outcome: 'failed' }])
})
