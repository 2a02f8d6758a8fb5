import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted } from '@skein/ai/testing'
import type { JsonValue } from '@skein/base'
import {
  createRuntime,
  type EmbeddedRuntime,
  type RuntimeOptions,
  defineAgent,
  defineEffect,
  defineEndpoint,
  definePrompt,
  defineTool,
  type ThreadState,
  sqliteStore,
} from '@skein/runtime'
import { createHttp } from '../../src/index.ts'

const opened: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop({ graceMs: 0 })
})

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1))
const add = (value: JsonValue | undefined): number => Number(value ?? 0) + 1

interface World {
  readonly runtime: EmbeddedRuntime
  readonly id: string
}

/** What a tool does between its read and its write is given by each test. */
async function start(
  {
    meanwhile = async () => {},
    ...options
  }: Partial<RuntimeOptions> & {
    readonly meanwhile?: (world: World) => Promise<void>
  } = {},
  run: (state: ThreadState, outside: () => Promise<void>) => Promise<unknown> = async () => 0,
): Promise<World> {
  const tool = defineTool({
    name: 'change',
    description: 'Changes a value.',
    args: z.object({}),
    risk: 'write_low_risk',
    execute: (state) => run(state, () => meanwhile(world)),
  })
  const model = scripted(({ messages }) => {
    const last = messages.at(-1)
    if (last?.type !== 'tool_result') return calls('change', {})
    return says(String(last.results[0]!.result))
  })
  const prompt = definePrompt({ name: 'p', prompt: 'Count.', model, tools: [tool] })
  const agent = defineAgent({ name: 'a', sideA: { prompt } })
  const runtime = await createRuntime({ agents: [agent], ...options })
  opened.push(runtime)
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a', values: { count: 10 } })
  const world: World = { runtime, id }
  return world
}

const count = ({ runtime, id }: World): Promise<JsonValue | undefined> =>
  runtime.threads.values.get(id, 'count')

describe('withState', () => {
  test('20 increments at once are 20, by reading and setting and by updating', async () => {
    const world = await start()
    const { runtime, id } = world
    let runs = 0
    await Promise.all(
      Array.from({ length: 20 }, () =>
        runtime.withState(id, async (state) => {
          runs++
          const before = state.getValue('count')
          await pause()
          state.setValue('count', add(before))
        }),
      ),
    )
    expect(await count(world)).toBe(30)
    expect(runs).toBeGreaterThan(20)
    runs = 0
    await Promise.all(
      Array.from({ length: 20 }, () =>
        runtime.withState(id, async (state) => {
          runs++
          await pause()
          state.updateValue('count', add)
        }),
      ),
    )
    expect(await count(world)).toBe(50)
    // The function is applied in the commit, so nothing has to run again.
    expect(runs).toBe(20)
  })

  test('code that may not run again is refused, and nothing of it is stored', async () => {
    const world = await start()
    const { runtime, id } = world
    const stale = (tell: boolean) => async (state: ThreadState) => {
      const before = state.getValue('count')
      if (tell) await state.emit('counted', null)
      await runtime.threads.values.set(id, 'count', 100)
      state.setValue('other', 'stored?')
      state.setValue('count', add(before))
    }
    const conflict = { name: 'RuntimeError', code: 'STATE_CONFLICT' }
    await expect(
      runtime.withState(id, stale(false), { isRepeatable: false }),
    ).rejects.toMatchObject(conflict)
    // An event that was told cannot be taken back, so the code is not run again.
    await expect(runtime.withState(id, stale(true))).rejects.toMatchObject(conflict)
    expect(await runtime.threads.values.list(id)).toEqual({ count: 100 })
  })

  test('what was listed counts as read, what was not read does not, and one read after an update does', async () => {
    const world = await start()
    const { runtime, id } = world
    const { values } = runtime.threads
    const runsOf = async (other: string, work: (state: ThreadState) => void): Promise<number> => {
      let runs = 0
      await runtime.withState(id, async (state) => {
        work(state)
        if (runs++ === 0) await values.set(id, other, runs)
        state.setValue('done', true)
      })
      return runs
    }
    expect(await runsOf('a/1', (state) => state.listValues('a/'))).toBe(2)
    expect(await runsOf('b/1', (state) => state.listValues('a/'))).toBe(1)
    expect(await runsOf('count', (state) => state.setValue('count', 1))).toBe(1)
    const own = (state: ThreadState): unknown => {
      state.setValue('count', 1)
      state.updateValue('count', add)
      return state.getValue('count')
    }
    expect(await runsOf('count', own)).toBe(1)
    expect(await count(world)).toBe(2)
    const seen = (state: ThreadState): unknown => {
      state.updateValue('count', add)
      return state.getValue('count')
    }
    expect(await runsOf('count', seen)).toBe(2)
    // Only read: nothing can be lost, so nothing runs again.
    await runtime.withState(id, async (state) => {
      state.getValue('count')
      await values.set(id, 'count', 7)
    })
    expect(await count(world)).toBe(7)
  })

  test('a function that refuses the newer value leaves it as it is', async () => {
    const world = await start()
    const { runtime, id } = world
    const spend = runtime.withState(id, async (state) => {
      state.updateValue('count', (value) => {
        if (Number(value) < 5) throw new Error('There is not enough left.')
        return Number(value) - 5
      })
      await runtime.threads.values.set(id, 'count', 3)
    })
    await expect(spend).rejects.toThrow('There is not enough left.')
    expect(await count(world)).toBe(3)
    await expect(
      runtime.withState(id, (state) => state.updateValue('count', () => undefined as never)),
    ).rejects.toMatchObject({ code: 'VALUE_INVALID' })
    await runtime.withState(id, (state) => state.updateValue('count', () => null))
    expect(await count(world)).toBeUndefined()
  })
})

describe('a tool', () => {
  const outside = async ({ runtime, id }: World): Promise<void> =>
    runtime.threads.values.set(id, 'count', 100)

  test('does not overwrite what was set after it read: its call is an error that says so', async () => {
    const world = await start({ meanwhile: outside }, async (state, meanwhile) => {
      const before = state.getValue('count')
      await meanwhile()
      state.setValue('count', add(before))
      state.setValue('other', 'stored?')
      return 'fine'
    })
    const { text } = await world.runtime.threads.run(world.id, 'go')
    expect(text).toMatch(
      /^The tool ran, but its changes .* not stored\. The value "count" of thread/,
    )
    expect(await world.runtime.threads.values.list(world.id)).toEqual({ count: 100 })
  })

  test('that updates has its function applied to the newer value', async () => {
    const world = await start({ meanwhile: outside }, async (state, meanwhile) => {
      state.updateValue('count', add)
      await meanwhile()
      return 'fine'
    })
    const { text } = await world.runtime.threads.run(world.id, 'go')
    expect(text).toBe('fine')
    expect(await count(world)).toBe(101)
  })

  test('that read another value, or none, is not held up', async () => {
    const world = await start({ meanwhile: outside }, async (state, meanwhile) => {
      const before = state.getValue('count')
      await meanwhile()
      state.setValue('copy', before ?? null)
      return 'fine'
    })
    expect((await world.runtime.threads.run(world.id, 'go')).text).toBe('fine')
    expect(await world.runtime.threads.values.list(world.id)).toEqual({ copy: 10, count: 100 })
  })
})

test('an effect that lost a race is retried as its definition says', async () => {
  let runs = 0
  let world: World | undefined
  const effect = defineEffect({
    name: 'count',
    retry: { attempts: 3, backoffMs: 1 },
    async execute(state) {
      const before = state.getValue('count')
      if (runs++ === 0) await world!.runtime.threads.values.set(world!.id, 'count', 100)
      state.setValue('count', add(before))
    },
  })
  world = await start({ effects: [effect] })
  await world.runtime.threads.effects.schedule(world.id, 'count', null, 0)
  await expect.poll(() => count(world!)).toBe(101)
  expect(runs).toBe(2)
})

test('an endpoint runs again, and answers 409 where it may not', async () => {
  let isFirst = true
  const endpoint = (path: string, isRepeatable?: boolean) =>
    defineEndpoint({
      path,
      method: 'POST',
      isRepeatable,
      async execute(request, state) {
        const by = Number(await request.text())
        const before = Number(state.getValue('count'))
        if (isFirst) await world.runtime.threads.values.set(world.id, 'count', 100)
        isFirst = false
        state.setValue('count', before + by)
        return Response.json(before + by)
      },
    })
  const world = await start({ endpoints: [endpoint('add'), endpoint('once', false)] })
  const http = createHttp(world.runtime, { auth: 'none' })
  const post = (path: string): Promise<Response> =>
    http.fetch(
      new Request(`http://localhost/threads/${world.id}/x/${path}`, { method: 'POST', body: '5' }),
    )
  const added = await post('add')
  expect([added.status, await added.text()]).toEqual([200, '105'])
  isFirst = true
  const refused = await post('once')
  expect(refused.status).toBe(409)
  expect(await refused.json()).toMatchObject({ error: { code: 'STATE_CONFLICT' } })
  expect(await count(world)).toBe(100)
})

/** One step of a program: reads a key into a register, or writes a key from it. */
type Step = { readonly type: 'read' | 'set' | 'update' | 'list'; readonly key: string }

const KEYS = ['a', 'b', 'c']
const stepArbitrary = fc.record({
  type: fc.constantFrom('read', 'set', 'update', 'list'),
  key: fc.constantFrom(...KEYS),
}) as fc.Arbitrary<Step>

/** Runs a program on values; `number` makes what it writes its own. */
function* program(
  steps: readonly Step[],
  number: number,
  state: Pick<ThreadState, 'getValue' | 'setValue' | 'updateValue' | 'listValues'>,
): Generator<void> {
  let register = number
  for (const { type, key } of steps) {
    yield
    if (type === 'read') register = (register * 31 + Number(state.getValue(key) ?? 0)) % 9973
    if (type === 'list')
      for (const value of Object.values(state.listValues()))
        register = (register + Number(value)) % 9973
    if (type === 'set') state.setValue(key, register)
    if (type === 'update')
      state.updateValue(key, (value) => (Number(value ?? 0) * 7 + number) % 9973)
  }
}

/** The programs one after the other, on plain values. */
function inOrder(programs: readonly (readonly Step[])[], order: readonly number[]): string {
  const values = new Map<string, JsonValue>()
  for (const index of order) {
    const state = {
      getValue: (key: string) => values.get(key),
      setValue: (key: string, value: JsonValue | null) => void values.set(key, value),
      updateValue: (key: string, change: (value: JsonValue | undefined) => JsonValue | null) =>
        void values.set(key, change(values.get(key))),
      listValues: () => Object.fromEntries([...values].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    }
    for (const _ of program(programs[index]!, index + 1, state)) continue
  }
  return JSON.stringify([...values].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function orders(numbers: readonly number[]): number[][] {
  if (numbers.length === 0) return [[]]
  return numbers.flatMap((first) =>
    orders(numbers.filter((number) => number !== first)).map((rest) => [first, ...rest]),
  )
}

test.each([
  ['memory', () => undefined],
  ['SQLite', () => sqliteStore({ path: ':memory:' })],
])('programs at once leave what some order of them leaves (%s)', async (_, store) => {
  const opening = store()
  const world = await start(opening ? { store: opening } : {})
  const { runtime } = world
  const programs = fc.array(fc.array(stepArbitrary, { minLength: 1, maxLength: 5 }), {
    minLength: 2,
    maxLength: 4,
  })
  await fc.assert(
    fc.asyncProperty(programs, async (given) => {
      const { id } = await runtime.threads.create({ agent: 'a' })
      await Promise.all(
        given.map((steps, index) =>
          runtime.withState(id, async (state) => {
            for (const _ of program(steps, index + 1, state))
              if (index % 2 === 0) await Promise.resolve()
            if (index % 3 === 0) await pause()
          }),
        ),
      )
      const left = Object.entries(await runtime.threads.values.list(id))
      const allowed = orders(given.map((_, index) => index)).map((order) => inOrder(given, order))
      expect(allowed).toContain(JSON.stringify(left))
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 1_000 : 60 },
  )
})
