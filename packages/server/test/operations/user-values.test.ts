import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted } from '@skein/ai/testing'
import type { JsonValue } from '@skein/base'
import {
  type Commit,
  createRuntime,
  defineAgent,
  defineEffect,
  defineHook,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  memoryStore,
  type RuntimeOptions,
  sqliteStore,
  type Store,
  type ThreadState,
} from '@skein/runtime'
import { createClient } from '../../src/client/index.ts'
import { coded } from '../../../runtime/test/api/harness.ts'
import { startKit, type Kit } from '../http/http-kit.ts'

const opened: EmbeddedRuntime[] = []
const kits: Kit[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop({ graceMs: 0 })
  for (const kit of kits.splice(0)) await kit.stop()
})

const add = (value: JsonValue | undefined): number => Number(value ?? 0) + 1
const ADA = { tenant: 'acme', user: 'ada' }

/** An agent with one tool whose work the test gives. */
function agentWith(work: (state: ThreadState) => unknown, risk: 'read_only' | 'write_low_risk') {
  const tool = defineTool({
    name: 'work',
    description: 'Works.',
    args: z.object({}),
    risk,
    execute: async (state) => ((await work(state)) ?? 'done') as string,
  })
  const model = scripted(({ messages }) => {
    const last = messages.at(-1)
    if (last?.type !== 'tool_result') return calls('work', {})
    return says(JSON.stringify(last.results[0]!.result))
  })
  const prompt = definePrompt({ name: 'p', prompt: 'Work.', model, tools: [tool] })
  return defineAgent({ name: 'a', sideA: { prompt } })
}

async function start(
  work: (state: ThreadState) => unknown,
  options: Partial<RuntimeOptions> = {},
): Promise<EmbeddedRuntime> {
  const runtime = await createRuntime({ agents: [agentWith(work, 'write_low_risk')], ...options })
  opened.push(runtime)
  await runtime.start()
  return runtime
}

async function runIn(
  { threads }: EmbeddedRuntime,
  of: { readonly tenant?: string; readonly owner?: string },
): Promise<string> {
  const { id } = await threads.create({ agent: 'a', ...of })
  return (await threads.run(id, 'Go.')).text
}

describe('state.user', () => {
  test('a value that a tool sets is seen in other threads of the user, and by nobody else', async () => {
    let work = async (state: ThreadState): Promise<unknown> => {
      await state.user.set('name', { first: 'Ada' })
      return [await state.user.get('name'), await state.user.list(), await state.getUserValue('x')]
    }
    const runtime = await start((state) => work(state))
    const own = { tenant: 'acme', owner: 'ada' }
    expect(JSON.parse(await runIn(runtime, own))).toEqual([
      { first: 'Ada' },
      { name: { first: 'Ada' } },
      null,
    ])
    work = (state) => state.listUserValues()
    expect(JSON.parse(await runIn(runtime, own))).toEqual({ name: { first: 'Ada' } })
    for (const stranger of [
      { tenant: 'acme', owner: 'bob' },
      { tenant: 'beta', owner: 'ada' },
    ])
      expect(JSON.parse(await runIn(runtime, stranger))).toEqual({})
    const { values } = runtime.users
    expect(await values.list(ADA)).toMatchObject([{ key: 'name', value: { first: 'Ada' } }])
    expect(await values.list({ ...ADA, tenant: 'beta' })).toEqual([])
  })

  test('a thread without an owner has no user, and says so', async () => {
    const runtime = await start((state) => state.user.get('x'))
    expect(await runIn(runtime, {})).toContain('has no owner')
  })

  test('a child has the user of its root thread', async () => {
    const child = defineAgent({
      name: 'child',
      type: 'dual_ai',
      exposeAsTool: true,
      toolDescription: 'Notes it.',
      maxSessionTurns: 4,
      sideA: {
        prompt: definePrompt({
          name: 'child_a',
          prompt: 'Note it.',
          model: scripted(() => calls('note', {})),
          tools: [
            defineTool({
              name: 'note',
              description: 'Notes.',
              args: z.object({}),
              risk: 'write_low_risk',
              execute: async (state) => {
                await state.user.update('count', add)
                return state.userId === null ? 'no owner itself' : 'an owner'
              },
            }),
          ],
        }),
        sessionStop: 'note',
      },
      sideB: { prompt: definePrompt({ name: 'child_b', prompt: 'B', model: scripted(() => []) }) },
    })
    const model = scripted(({ messages }) =>
      messages.at(-1)?.type === 'tool_result' ? says('ok') : calls('child', { message: 'go' }),
    )
    const prompt = definePrompt({ name: 'p', prompt: 'P', model, tools: [child] })
    const runtime = await createRuntime({ agents: [defineAgent({ name: 'a', sideA: { prompt } })] })
    opened.push(runtime)
    await runtime.start()
    await runIn(runtime, { tenant: 'acme', owner: 'ada' })
    expect(await runtime.users.values.get(ADA, 'count')).toMatchObject({ value: 1 })
  })

  test('a tool that throws changes nothing; secrets of the thread are not stored', async () => {
    let isFailing = true
    const runtime = await start(async (state) => {
      await state.user.set('key', `the key is ${state.hasEnv('KEY') ? state.env('KEY') : ''}`)
      if (isFailing) throw new Error('no')
    })
    const own = { tenant: 'acme', owner: 'ada' }
    await runIn(runtime, own)
    expect(await runtime.users.values.list(ADA)).toEqual([])
    isFailing = false
    const { id } = await runtime.threads.create({
      agent: 'a',
      ...own,
      secrets: { KEY: 'canary-secret-value' },
    })
    await runtime.threads.run(id, 'Go.')
    const [stored] = await runtime.users.values.list(ADA)
    expect(stored?.value).toMatch(/^the key is /)
    expect(JSON.stringify(stored)).not.toContain('canary-secret-value')
    const log = JSON.stringify(await runtime.threads.events(id))
    expect(log).not.toContain('the key is') // the log of a thread is no copy of the user's values
  })

  test('hooks and effects write values of the user too, and an update in them is not lost', async () => {
    const hook = defineHook({
      hook: 'tool_call_done',
      id: 'count',
      execute: (state) => state.user.update('hook', add),
    })
    const effect = defineEffect({
      name: 'later',
      execute: (state) => state.user.update('effect', add),
    })
    const tool = defineTool({
      name: 'work',
      description: 'Works.',
      args: z.object({}),
      risk: 'write_low_risk',
      execute: (state) => state.scheduleEffect('later', {}, 0),
    })
    const model = scripted([calls('work', {}), says('ok')])
    const prompt = definePrompt({ name: 'p', prompt: 'P', model, tools: [tool], hooks: [hook] })
    const runtime = await createRuntime({
      agents: [defineAgent({ name: 'a', sideA: { prompt } })],
      effects: [effect],
    })
    opened.push(runtime)
    await runtime.start()
    await runIn(runtime, { tenant: 'acme', owner: 'ada' })
    await runtime.idle()
    const values = await runtime.users.values.list(ADA)
    expect(values.map(({ key, value }) => [key, value])).toEqual([
      ['effect', 1],
      ['hook', 1],
    ])
  })

  test.each(['memory', 'sqlite'])('20 threads that update one value at once: %s', async (kind) => {
    const store = kind === 'memory' ? memoryStore() : sqliteStore({ path: ':memory:' })
    const runtime = await start((state) => state.user.update('count', add), { store })
    const own = { tenant: 'acme', owner: 'ada' }
    await Promise.all(Array.from({ length: 20 }, () => runIn(runtime, own)))
    expect(await runtime.users.values.get(ADA, 'count')).toMatchObject({ value: 20 })
  })

  test('a value that was read and then set by others refuses the changes of the call', async () => {
    const texts: string[] = []
    const runtime = await start(async (state) => {
      const before = await state.user.get('count')
      await runtime.users.values.set(ADA, 'count', 100)
      await state.user.set('count', add(before))
      state.setValue('mine', true)
    })
    const { id } = await runtime.threads.create({ agent: 'a', tenant: 'acme', owner: 'ada' })
    texts.push((await runtime.threads.run(id, 'Go.')).text)
    expect(texts[0]).toContain('its changes to the thread were not stored')
    expect(await runtime.users.values.get(ADA, 'count')).toMatchObject({ value: 100 })
    expect(await runtime.threads.values.list(id)).toEqual({})
  })

  test('too many values are told to the model, and the thread goes on', async () => {
    const runtime = await start(async (state) => {
      for (let i = 0; i <= 1000; i++) await state.user.set(`k${i}`, i)
    })
    expect(await runIn(runtime, { tenant: 'acme', owner: 'ada' })).toContain('no more are kept')
    expect(await runtime.users.values.list(ADA)).toEqual([])
  })

  test('endpoints: 20 increments at once are 20, by reading and setting and by updating', async () => {
    const runtime = await start(() => undefined)
    const ids = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const of = { agent: 'a', tenant: 'acme', owner: 'ada' }
        return (await runtime.threads.create(of)).id
      }),
    )
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        runtime.withState(ids[index % 4]!, async (state) => {
          await state.user.set('set', add(await state.user.get('set')))
          await state.user.update('updated', add)
        }),
      ),
    )
    expect(await runtime.users.values.get(ADA, 'set')).toMatchObject({ value: 20 })
    expect(await runtime.users.values.get(ADA, 'updated')).toMatchObject({ value: 20 })
  })

  type Step = readonly ['set' | 'update' | 'delete', string, number]
  test('property: reads include own writes, and what is committed is what was read last', async () => {
    const runtime = await start(() => undefined)
    const { id } = await runtime.threads.create({ agent: 'a', tenant: 'acme', owner: 'ada' })
    const step: fc.Arbitrary<Step> = fc.tuple(
      fc.constantFrom('set', 'update', 'delete'),
      fc.constantFrom('a', 'b', 'ab'),
      fc.integer({ min: 0, max: 9 }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), fc.boolean(), async (steps, looks) => {
        const model = new Map(
          (await runtime.users.values.list(ADA)).map(({ key, value }) => [key, value]),
        )
        await runtime.withState(id, async ({ user }) => {
          for (const [kind, key, by] of steps) {
            const sum = (value: JsonValue | undefined): number => Number(value ?? 0) + by
            if (kind === 'set') await user.set(key, by)
            else if (kind === 'update') await user.update(key, sum)
            else await user.delete(key)
            if (kind === 'delete') model.delete(key)
            else model.set(key, kind === 'set' ? by : sum(model.get(key)))
            if (!looks) continue
            expect(await user.get(key)).toEqual(model.get(key))
            const listed = Object.fromEntries([...model].filter(([one]) => one.startsWith('a')))
            expect(await user.list('a')).toEqual(listed)
          }
        })
        const stored = await runtime.users.values.list(ADA)
        expect(Object.fromEntries(stored.map(({ key, value }) => [key, value]))).toEqual(
          Object.fromEntries(model),
        )
      }),
      { numRuns: 60 },
    )
  })
})

/** A store whose process dies at its n-th commit: from then on, nothing of it ever answers. */
function dying(
  store: Store,
  at: number,
  isWritten: boolean,
): { store: Store; died: Promise<void>; count: () => number } {
  let commits = 0
  let isDead = false
  let die = (): void => {}
  const died = new Promise<void>((resolve) => (die = resolve))
  const never = new Promise<never>(() => {})
  const proxy = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return async (...args: unknown[]) => {
        if (isDead) return never
        if (name === 'commit' && ++commits === at) {
          if (isWritten) await store.commit(args[0] as Commit)
          isDead = true
          die()
          return never
        }
        return Reflect.apply(member, target, args)
      }
    },
  })
  return { store: proxy, died, count: () => commits }
}

describe('crashes', () => {
  test.each(['read_only', 'write_low_risk'] as const)(
    'at every commit, before and after it: a value is written with its call, once (%s)',
    async (risk) => {
      let points = 20
      for (let at = 1; at <= points; at++)
        for (const isWritten of [false, true]) {
          const store = memoryStore()
          const agents = [agentWith((state) => state.user.update('count', add), risk)]
          const first = await createRuntime({ agents, store, owner: 'setup' })
          const of = { agent: 'a', tenant: 'acme', owner: 'ada' }
          const { id } = await first.threads.create(of)
          const world = dying(store, at, isWritten)
          const mortal = await createRuntime({ agents, store: world.store, owner: 'mortal' })
          await mortal.start()
          const run = mortal.threads.run(id, 'Go.')
          run.catch(() => {})
          if ((await Promise.race([run, world.died])) !== undefined) {
            points = world.count() // it lived to the end
            await mortal.stop()
            break
          }
          await store.release('mortal')
          const next = await createRuntime({ agents, store, owner: 'next' })
          await next.start()
          await next.idle()
          const log = (await next.threads.events(id)).map(({ event }) => event)
          const ended = log.filter((event) => event.type === 'tool_execution_end')
          const done = ended.filter((event) => event.outcome === 'success').length
          const value = (await next.users.values.get(ADA, 'count'))?.value ?? 0
          expect(value, `commit ${at} ${isWritten}`).toBe(done)
          expect(ended.length).toBeLessThanOrEqual(1)
          if (risk === 'read_only') expect(done).toBe(ended.length)
          await next.stop()
        }
      expect(points).toBeGreaterThan(3)
    },
  )
})

describe('from outside', () => {
  test('conditions, erasing and what erasing a thread keeps', async () => {
    const runtime = await start((state) => state.user.set('from', state.threadId))
    const { values } = runtime.users
    const { id } = await runtime.threads.create({ agent: 'a', tenant: 'acme', owner: 'ada' })
    await runtime.threads.run(id, 'Go.')
    const first = await values.set(ADA, 'k', [1], { expectVersion: null })
    await expect(values.set(ADA, 'k', 2, { expectVersion: null })).rejects.toEqual(
      coded('STATE_CONFLICT'),
    )
    const second = await values.set(ADA, 'k', 2, { expectVersion: first!.version })
    await expect(values.set(ADA, 'k', null, { expectVersion: first!.version })).rejects.toEqual(
      coded('STATE_CONFLICT'),
    )
    expect(await values.set(ADA, 'k', null, { expectVersion: second!.version })).toBeUndefined()
    await expect(values.set(ADA, '', 1)).rejects.toEqual(coded('VALUE_INVALID'))
    await expect(values.set(ADA, 'a\0', 1)).rejects.toEqual(coded('VALUE_INVALID'))
    await expect(values.set(ADA, 'big', 'x'.repeat(300_000))).rejects.toEqual(
      coded('VALUE_INVALID'),
    )
    await runtime.threads.erase(id)
    await runtime.threads.remove(id)
    expect(await values.list(ADA)).toMatchObject([{ key: 'from', value: id }])
    expect(await values.erase(ADA)).toBe(1)
    expect(await values.list(ADA)).toEqual([])
  })

  test('over HTTP: a user reaches only the own values, an administrator those of the tenant', async () => {
    const kit = await startKit()
    kits.push(kit)
    const of = (who: 'ada' | 'bob' | 'acme' | 'rival' | 'reader', method: string, path: string) =>
      kit.ask(who, method, path, method === 'PUT' ? { value: 'canary-of-ada' } : undefined)
    expect((await of('ada', 'PUT', '/users/ada/values/a/b')).status).toBe(200)
    expect(await (await of('ada', 'GET', '/users/ada/values/a/b')).json()).toMatchObject({
      key: 'a/b',
      value: 'canary-of-ada',
    })
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/a/b'],
      ['PUT', '/a/b'],
      ['DELETE', '/a/b'],
    ] as const) {
      const strange = await of('bob', method, `/users/ada/values${path}`)
      const unknown = await of('bob', method, `/users/nobody/values${path}`)
      const texts = [await strange.text(), await unknown.text()]
      expect([strange.status, unknown.status]).toEqual([403, 403])
      expect(texts[0]).toBe(texts[1])
      const rival = await of('rival', method, `/users/ada/values${path}`)
      expect(await rival.text()).not.toContain('canary-of-ada"}') // the values of rival's own ada
    }
    expect((await of('reader', 'PUT', '/users/ada/values/a/b')).status).toBe(403)
    const seen = await of('acme', 'GET', '/users/ada/values?prefix=a')
    expect(await seen.json()).toMatchObject({ values: [{ key: 'a/b', value: 'canary-of-ada' }] })
  })

  test('the client does what the API does', async () => {
    const kit = await startKit()
    kits.push(kit)
    const { values } = createClient({
      url: 'http://localhost',
      apiKey: 'key-of-ada-0123456789',
      fetch: (url, init) => kit.http.fetch(new Request(url, init)),
    }).users
    expect(await values.get('ada', 'k')).toBeUndefined()
    const first = await values.set('ada', 'k', { a: [1] }, { expectVersion: null })
    expect(first).toMatchObject({ key: 'k', value: { a: [1] } })
    expect(await kit.runtime.users.values.list(ADA)).toEqual([first])
    await expect(values.set('ada', 'k', 2, { expectVersion: null })).rejects.toEqual(
      coded('STATE_CONFLICT'),
    )
    await expect(values.set('ada', 'k', null, { expectVersion: null })).rejects.toEqual(
      coded('STATE_CONFLICT'),
    )
    await expect(values.list('bob')).rejects.toEqual(coded('SCOPE_MISSING'))
    expect(await values.list('ada', 'k')).toEqual([first])
    await values.set('ada', 'k', null, { expectVersion: first!.version })
    await values.set('ada', 'l', 1)
    expect(await values.erase('ada')).toBe(1)
  })
})
