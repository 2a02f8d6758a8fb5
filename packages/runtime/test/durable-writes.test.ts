import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  type Commit,
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  defineHook,
  type EmbeddedRuntime,
  type HookDefinition,
  memoryStore,
  type RuntimeEvent,
  sqliteStore,
  type Store,
} from '@skein/runtime'
import { z } from 'zod'
import { foldKernel, KernelFold } from '../src/state/fold.ts'
import { deferred } from './api/harness.ts'

// The promises of docs/decisions/0016-durable-writes.md.

const folder = mkdtempSync(join(tmpdir(), 'skein-durable-'))
const secretKey = Buffer.alloc(32, 7).toString('base64')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Told {
  readonly ran: string[]
  asked: number
}

/** An agent that looks (a read) or pays (a write) once, then answers. */
function deskWith(
  told: Told,
  {
    risk = 'read_only',
    hooks = [],
  }: {
    readonly risk?: 'read_only' | 'write_low_risk'
    readonly hooks?: readonly HookDefinition[]
  } = {},
) {
  const tool = defineTool({
    name: 'work',
    description: 'Works.',
    args: z.object({}),
    risk,
    execute: (_state, _args) => {
      told.ran.push(risk)
      return 'worked'
    },
  })
  const model = scripted((request) => {
    told.asked++
    return request.messages.at(-1)?.type === 'tool_result' ? says('Done.') : calls('work', {})
  })
  return defineAgent({
    name: 'desk',
    sideA: { prompt: definePrompt({ name: 'desk', prompt: 'Work.', model, tools: [tool], hooks }) },
  })
}

function committing(store: Store, commit: Store['commit']): Store {
  return replacing(store, { commit })
}

/** Returns the store with some of its methods replaced. */
function replacing(store: Store, own: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(own, name) ?? Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

async function logOf(store: Store, id: string): Promise<RuntimeEvent[]> {
  return (await store.events(id)).map(({ event }) => event)
}

test('a turn with a tool round is four commits that are synced, and one that is not', async () => {
  const store = memoryStore()
  const commits: Commit[] = []
  const told: Told = { ran: [], asked: 0 }
  const runtime = await createRuntime({
    agents: [deskWith(told)],
    store: committing(store, (commit) => {
      commits.push(commit)
      return store.commit(commit)
    }),
  })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'desk' })
  commits.length = 0
  await runtime.threads.run(id, 'Go.')
  const types = (await logOf(store, id)).map(({ type }) => type)
  await runtime.stop()
  expect(commits.map(({ point, isLazy = false }) => [point, isLazy])).toEqual([
    ['send_message', false],
    ['session_start', true],
    ['answer+call_start', false],
    ['call_end+step_end', false],
    ['answer+session_end+park', false],
  ])
  const ofTurn = types
    .slice(types.indexOf('message_queued'))
    .filter((type) => type !== 'evidence_added' && type !== 'gate_decided')
  const expected = `message_queued session_start status_changed message_added turn_start step_start
    model_requested model_answered message_added tool_execution_start tool_execution_end step_end step_start
    model_requested model_answered message_added step_end turn_end session_end status_changed`
  expect(ofTurn).toEqual(expected.split(/\s+/))
})

test('the start of a call that must not run twice is synced before it runs', async () => {
  const store = memoryStore()
  const synced: string[] = []
  const told: Told = { ran: [], asked: 0 }
  const runtime = await createRuntime({
    agents: [deskWith(told, { risk: 'write_low_risk' })],
    store: committing(store, async (commit) => {
      const result = await store.commit(commit)
      if (!commit.isLazy)
        for (const { type } of commit.threads[0]?.append ?? [])
          synced.push(`${type} after ${told.ran.length} runs`)
      return result
    }),
  })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.run(id, 'Go.')
  await runtime.stop()
  expect(synced).toContain('tool_execution_start after 0 runs')
})

test.each(['answer', 'call_end', 'session_end'])(
  'mail that comes after a write has joined and before its commit (%s): nothing is asked or run twice',
  async (first) => {
    const store = memoryStore()
    const told: Told = { ran: [], asked: 0 }
    const folds = watchFolds()
    let mailed = 0
    let runtime: EmbeddedRuntime | undefined
    // With this hook, an answer is committed by itself.
    const hook = defineHook({ id: 'see', hook: 'after_create_message', execute: () => {} })
    runtime = await createRuntime({
      agents: [deskWith(told, { hooks: first === 'session_end' ? [hook] : [] })],
      store: committing(store, async (commit) => {
        const { point, threads } = commit
        if (mailed === 0 && point.startsWith(`${first}+`) && threads[0]?.fence !== undefined) {
          mailed++
          await runtime?.threads.send(threads[0].id, 'One more.')
        }
        return store.commit(commit)
      }),
    })
    try {
      await runtime.start()
      const { id } = await runtime.threads.create({ agent: 'desk' })
      await runtime.threads.run(id, 'Go.')
      const taken = async () =>
        (await logOf(store, id)).filter((event) => event.type === 'message_added' && event.queueId)
      await expect.poll(async () => (await taken()).length).toBe(2)
      await expect.poll(async () => (await store.head(id))?.lifecycle).toBe('idle')
      expect(mailed).toBe(1)
      const log = await logOf(store, id)
      const answers = log.filter(({ type }) => type === 'model_answered')
      expect(answers).toHaveLength(told.asked)
      const started = log.filter(({ type }) => type === 'tool_execution_start')
      expect(started).toHaveLength(told.ran.length)
      await folds.check(store, id)
    } finally {
      folds.end()
      await runtime.stop()
    }
  },
)

test('an answer whose message is edited before its commit is dropped, and the model asked again', async () => {
  const store = memoryStore()
  const seen: string[] = []
  const model = scripted((request) => {
    seen.push(request.messages.at(-1)?.text ?? '')
    return says(`About ${seen.at(-1)}.`)
  })
  const prompt = definePrompt({ name: 'desk', prompt: 'Talk.', model })
  let runtime: EmbeddedRuntime | undefined
  let edited = 0
  runtime = await createRuntime({
    agents: [defineAgent({ name: 'desk', sideA: { prompt } })],
    store: committing(store, async (commit) => {
      const { point, threads } = commit
      if (edited === 0 && point.startsWith('answer+')) {
        edited++
        const { id } = threads[0]!
        const [message] = (await runtime!.threads.messages(id)).filter(
          ({ message: { type } }) => type === 'user',
        )
        await runtime!.threads.updateMessage(id, message!.id, 'cats')
      }
      return store.commit(commit)
    }),
  })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'desk' })
  const { text } = await runtime.threads.run(id, 'dogs')
  const log = await logOf(store, id)
  await runtime.stop()
  expect(seen).toEqual(['dogs', 'cats'])
  expect(text).toBe('About cats.')
  expect(log.filter(({ type }) => type === 'step_reset')).toHaveLength(1)
  expect(log.filter(({ type }) => type === 'model_answered')).toHaveLength(2)
})

/** Watches all folds, and checks at the end that each holds what is in the log. */
function watchFolds(): { check(store: Store, threadId: string): Promise<void>; end(): void } {
  const folds = new Set<KernelFold>()
  const push = KernelFold.prototype.push
  KernelFold.prototype.push = function (this: KernelFold, stored) {
    folds.add(this)
    return push.call(this, stored)
  }
  const end = (): void => void (KernelFold.prototype.push = push)
  return {
    end,
    async check(store, threadId) {
      end()
      for (const { state, ahead } of folds) {
        if (ahead > 0 || state.threadId !== threadId) continue
        const stored = (await store.events(threadId)).slice(0, state.seq)
        expect(state).toEqual(foldKernel(stored))
      }
    },
  }
}

test('a lease is lost while the result of a call waits for the store: the next drain sees the log and nothing else', async () => {
  const store = memoryStore()
  const told: Told = { ran: [], asked: 0 }
  const folds = watchFolds()
  // The read before the result is stored is answered late: when the thread was claimed again and is read, at the
  // latest after half a second.
  const isClaimedAgain = deferred()
  let isLate = false
  let isLost = false
  const runtime = await createRuntime({
    agents: [deskWith(told)],
    limits: { leaseMs: 90 },
    store: replacing(store, {
      async renew(ids, options) {
        if (!isLate || isLost) return store.renew(ids, options)
        isLost = true
        return []
      },
      async events(id, range) {
        if (told.ran.length === 1 && !isLate) {
          isLate = true
          const timeOut = new Promise((resolve) => setTimeout(resolve, 500))
          await Promise.race([isClaimedAgain.promise, timeOut])
        } else if (isLost) {
          isClaimedAgain.resolve()
          await new Promise((resolve) => setImmediate(resolve))
        }
        return store.events(id, range)
      },
    }),
  })
  try {
    await runtime.start()
    const { id } = await runtime.threads.create({ agent: 'desk' })
    await runtime.threads.run(id, 'Go.')
    expect(isLost).toBe(true)
    const { entries } = foldKernel(await store.events(id))
    const outcomes = entries.flatMap((entry) => entry.calls.map(({ outcome }) => outcome))
    expect(outcomes).toEqual([{ type: 'done', result: 'worked' }])
    const ends = (await logOf(store, id)).filter(({ type }) => type === 'tool_execution_end')
    expect(ends).toHaveLength(1)
    await folds.check(store, id)
  } finally {
    folds.end()
    await runtime.stop()
  }
})

/** Copies a store with its write-ahead log, as it is at this moment. */
function image(from: string, to: string): void {
  for (const end of ['', '-wal']) cpSync(`${from}${end}`, `${to}${end}`)
}

test.each(['read_only', 'write_low_risk'] as const)(
  'after a failure of the machine that undoes what was not synced, the turn is finished (%s)',
  async (risk) => {
    // The machine fails before the commit with this number; all that was written since the last sync is lost.
    for (let at = 1, isOver = false; !isOver; at++) {
      const told: Told = { ran: [], asked: 0 }
      const path = join(folder, `${risk}-${at}.db`)
      const kept = join(folder, `${risk}-${at}-kept.db`)
      const store = sqliteStore({ path })
      const failed = deferred()
      const atSync: Told[] = []
      let count = 0
      const runtime = await createRuntime({
        agents: [deskWith(told, { risk })],
        secretKey,
        store: committing(store, async (commit) => {
          if (++count === at + 1) {
            failed.resolve()
            return new Promise<never>(() => {})
          }
          const result = await store.commit(commit)
          if (commit.isLazy) return result
          image(path, kept)
          atSync.push({ ...told, ran: [...told.ran] })
          return result
        }),
      })
      await runtime.start()
      const { id } = await runtime.threads.create({ agent: 'desk' })
      const run = runtime.threads.run(id, 'Go.').then(() => 'done' as const)
      isOver = (await Promise.race([run, failed.promise])) === 'done'
      if (isOver) {
        await runtime.stop()
        break
      }
      const ranBefore = told.ran.length
      const again = sqliteStore({ path: kept })
      const next = await createRuntime({
        agents: [deskWith(told, { risk })],
        secretKey,
        store: again,
      })
      await next.start()
      await next.threads.settled(id)
      const log = await logOf(again, id)
      await next.stop()
      const wasSent = log.some(({ type }) => type === 'message_queued')
      const ends = log.filter((event) => event.type === 'session_end')
      // A message whose sending was not confirmed may be lost with the machine; then nothing has happened.
      expect(ends, `commit ${at}`).toHaveLength(wasSent ? 1 : 0)
      if (!wasSent) expect(ranBefore).toBe(0)
      if (risk !== 'read_only') expect(told.ran.length, `commit ${at}`).toBeLessThanOrEqual(1)
      // Nothing ran that the kept log does not know.
      if (risk !== 'read_only' && ranBefore > 0)
        expect(log.some(({ type }) => type === 'tool_execution_start')).toBe(true)
    }
  },
  30_000,
)

test('an event of a thread is folded once in a process, for its drains and for readers', async () => {
  const store = memoryStore()
  const told: Told = { ran: [], asked: 0 }
  const folded: string[] = []
  const push = KernelFold.prototype.push
  KernelFold.prototype.push = function (this: KernelFold, stored) {
    if (stored.seq > this.state.seq) folded.push(`${this.state.threadId} ${stored.seq}`)
    return push.call(this, stored)
  }
  const runtime = await createRuntime({ agents: [deskWith(told)], store })
  try {
    await runtime.start()
    const { id } = await runtime.threads.create({ agent: 'desk' })
    for (const text of ['One.', 'Two.', 'Three.']) await runtime.threads.run(id, text)
    await runtime.threads.messages(id)
    expect(folded).toEqual([...new Set(folded)])
    expect(folded).toHaveLength((await store.head(id))!.seq)
  } finally {
    KernelFold.prototype.push = push
    await runtime.stop()
  }
})

test('readers of a thread see its log, and nothing that its drain has not committed yet', async () => {
  const store = memoryStore()
  const told: Told = { ran: [], asked: 0 }
  const seen: [shown: number, stored: number][] = []
  let runtime: EmbeddedRuntime | undefined
  runtime = await createRuntime({
    agents: [deskWith(told)],
    store: committing(store, async (commit) => {
      // The writes of this commit have joined: they are in the fold of the drain, and not in the log.
      if (commit.point.startsWith('answer+')) {
        const { id } = commit.threads[0]!
        const shown = await runtime!.threads.messages(id)
        const stored = (await logOf(store, id)).filter(({ type }) => type === 'message_added')
        seen.push([
          shown.filter(({ message }) => message.type !== 'tool_result').length,
          stored.length,
        ])
      }
      return store.commit(commit)
    }),
  })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.run(id, 'Go.')
  await runtime.stop()
  expect(seen).toEqual([
    [1, 1],
    [2, 2],
  ])
})
