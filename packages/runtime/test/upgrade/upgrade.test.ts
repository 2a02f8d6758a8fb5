import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { manualClock, sequentialIds } from '@skein/base'
import { EVENT_VERSION } from '../../src/contract/event.ts'
import { memoryGovernanceKeys, verifyAudit } from '../../src/index.ts'
import { createRuntime, type EmbeddedRuntime } from '../../src/runtime.ts'
import { sqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { manualTimers, type ManualTimers } from '../../src/testing/simulation.ts'
import type { SessionResult } from '../../src/contract/session-result.ts'
import type { WaitingItem } from '../../src/contract/waiting-item.ts'
import { parkedAgents, type World } from './parked-agents.ts'
import { DOOR_KEY, KEYS_SEED, SECRET_KEY, WRITTEN_AT } from './parked-installation.ts'

// Databases that earlier versions, and this one, have left behind. What was released is never written again.
const versions = readdirSync(import.meta.dirname).filter((name) => /^threads-v\d+\.sql$/.test(name))
const folder = mkdtempSync(join(tmpdir(), 'skein-upgrade-'))
const opened: EmbeddedRuntime[] = []

afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Opened {
  readonly runtime: EmbeddedRuntime
  readonly world: World
  readonly timers: ManualTimers
  /** Id of the thread that was parked under this name. */
  id(name: string): Promise<string>
  settled(name: string): Promise<SessionResult>
  waiting(name: string): Promise<WaitingItem>
  /** What models have said in it, in order. */
  said(name: string): Promise<string[]>
}

let count = 0

/** The database in a file of its own, opened by the current code ten minutes after it was written. */
async function open(version: string): Promise<Opened> {
  const path = join(folder, `${count++}.db`)
  const database = new DatabaseSync(path)
  database.exec(readFileSync(join(import.meta.dirname, version), 'utf8'))
  database.close()
  const world: World = { done: [] }
  const clock = manualClock(WRITTEN_AT + 10 * 60_000)
  const timers = manualTimers(clock)
  const errors: unknown[] = []
  const runtime = await createRuntime({
    ...parkedAgents(world),
    store: sqliteStore({ path }),
    clock,
    timers,
    ids: sequentialIds('new-'),
    keys: memoryGovernanceKeys({ seed: KEYS_SEED }),
    secretKey: SECRET_KEY,
    onError: (error) => errors.push(error),
  })
  opened.push(runtime)
  await runtime.start()
  await runtime.idle()
  expect(errors).toEqual([])
  const { threads } = runtime
  const id = async (name: string): Promise<string> =>
    (await threads.byClientId('default', name))!.id
  return {
    runtime,
    world,
    timers,
    id,
    settled: async (name) => threads.settled(await id(name)),
    async waiting(name) {
      const items = await runtime.inbox.list({ rootId: await id(name) })
      expect(items).toHaveLength(1)
      return items[0]!
    },
    async said(name) {
      const messages = await threads.messages(await id(name))
      return messages.flatMap(({ message: { type, text } }) =>
        type === 'assistant' && text !== '' ? [text] : [],
      )
    },
  }
}

/** Told of every thread whose state is not what it was when the process died. */
const unmoved = {
  approval: 'waiting',
  input: 'waiting',
  child: 'waiting',
  immediate: 'idle',
  idle: 'idle',
  failed: 'failed',
  variables: 'idle',
  stopped: 'stopped',
  terminated: 'terminated',
  erased: 'erased',
  cron: 'idle',
  secret: 'idle',
}

test('there is a database of each version of events', () => {
  const all = Array.from({ length: EVENT_VERSION }, (_, index) => `threads-v${index + 1}.sql`)
  expect(versions).toEqual(all)
})

describe.each(versions)('%s', (version) => {
  test('what waits goes on waiting, and nothing of it runs again', async () => {
    const { runtime, id, world } = await open(version)
    const before = new DatabaseSync(':memory:')
    before.exec(readFileSync(join(import.meta.dirname, version), 'utf8'))
    const row = before.prepare('SELECT seq, lifecycle FROM threads WHERE id = ?')
    for (const [name, lifecycle] of Object.entries(unmoved)) {
      const head = await runtime.threads.get(await id(name))
      expect({ name, seq: head.seq, lifecycle: head.lifecycle }).toEqual({
        name,
        ...row.get(head.id),
      })
      expect({ name, lifecycle }).toEqual({ name, lifecycle: head.lifecycle })
    }
    expect(world.done).toEqual(['look the door'])
  })

  test('an approval that was asked for then is given now', async () => {
    const { runtime, waiting, settled, world, id } = await open(version)
    const { threadId, interruptId, toolName, risk } = await waiting('approval')
    expect({ toolName, risk }).toEqual({ toolName: 'refund', risk: 'write_high_risk' })
    await runtime.inbox.approve({ threadId, interruptId, by: 'pat' })
    expect(await settled('approval')).toMatchObject({
      outcome: 'completed',
      text: 'It came to: refund O-1',
    })
    expect(world.done).toContain('refund O-1')
    const audit = await runtime.threads.audit(await id('approval'))
    expect(await verifyAudit(audit, { keys: [audit.publicKey] })).toMatchObject({ ok: true })
  })

  test('an approval can be refused', async () => {
    const { runtime, waiting, settled, world } = await open(version)
    const { threadId, interruptId } = await waiting('approval')
    await runtime.inbox.deny({ threadId, interruptId, by: 'pat', reason: 'too late' })
    expect((await settled('approval')).text).toContain('too late')
    expect(world.done).not.toContain('refund O-1')
  })

  test('a client answers', async () => {
    const { runtime, waiting, settled } = await open(version)
    const item = await waiting('input')
    await runtime.inbox.answer(item, { type: 'result', value: 'with milk' })
    expect(await settled('input')).toMatchObject({
      outcome: 'completed',
      text: 'It came to: with milk',
    })
  })

  test('a question that nobody answers expires', async () => {
    const { timers, runtime, settled } = await open(version)
    await timers.advance(8 * 24 * 3_600_000)
    await runtime.idle()
    const { outcome, waiting } = await settled('input')
    expect({ outcome, waiting }).toEqual({ outcome: 'completed', waiting: [] })
  })

  test('a parent gets the result of the child that its call waits for', async () => {
    const { runtime, waiting, settled, world } = await open(version)
    const { threadId, interruptId, path } = await waiting('child')
    expect(path).toEqual(['clerk', 'helper'])
    await runtime.inbox.approve({ threadId, interruptId, by: 'pat' })
    await runtime.idle()
    expect(await settled('child')).toMatchObject({ text: 'It came to: refund O-2' })
    expect(world.done.filter((what) => what === 'refund O-2')).toHaveLength(1)
    const ends = (await runtime.threads.events(threadId)).flatMap(({ event }) =>
      event.type === 'session_end' ? [event.outcome] : [],
    )
    expect(ends).toEqual(['completed'])
  })

  test('a thread takes its first step once the child that began by itself is done', async () => {
    const { runtime, waiting, said } = await open(version)
    const item = await waiting('immediate')
    expect(await said('immediate')).toEqual([])
    await runtime.inbox.answer(item, { type: 'result', value: 'yes' })
    await runtime.idle()
    expect((await said('immediate')).at(-1)).toContain('yes')
  })

  test('a model that failed is asked again', async () => {
    const { said } = await open(version)
    expect(await said('retry')).toEqual(['You said: hello'])
  })

  test('an effect that came due meanwhile runs, once', async () => {
    const { said, runtime, id } = await open(version)
    expect(await said('effect')).toEqual(['You said: Remember the milk.'])
    expect(await runtime.threads.effects.list(await id('effect'))).toEqual([])
  })

  test('a calendar goes on', async () => {
    const { said, timers, runtime, id } = await open(version)
    await timers.advance(50 * 60_000)
    await runtime.idle()
    expect(await said('cron')).toEqual(['You said: Remember the bread.'])
    const [effect] = await runtime.threads.effects.list(await id('cron'))
    expect(effect).toMatchObject({ name: 'remind', at: '2026-01-02T09:00:00.000Z' })
  })

  test('a child that waits for its variables begins when they come', async () => {
    const { runtime, id, said } = await open(version)
    const threadId = await id('variables')
    const events = await runtime.threads.events(threadId)
    const requested = events.find(({ event }) => event.type === 'variables_requested')?.event
    const { requestId } = requested as { requestId: string }
    expect(await runtime.threads.variables.get(threadId, requestId)).toMatchObject({
      status: 'open',
      missing: ['DOOR_KEY'],
    })
    await runtime.threads.variables.provide(threadId, requestId, { DOOR_KEY })
    await runtime.idle()
    expect((await said('variables')).at(-1)).toContain(`${DOOR_KEY.length} letters`)
  })

  test('secrets open', async () => {
    const { runtime, id } = await open(version)
    const { text } = await runtime.threads.run(await id('secret'), 'call count_key {}')
    expect(text).toBe(`It came to: ${DOOR_KEY.length} letters`)
  })

  test.each([
    ['stopped', 'You said: go on'],
    ['failed', 'You said: go on'],
    ['idle', 'You said: go on'],
  ])('a thread that is %s goes on with a message', async (name, text) => {
    const { runtime, id } = await open(version)
    expect(await runtime.threads.run(await id(name), 'go on')).toMatchObject({
      outcome: 'completed',
      text,
    })
  })

  test.each(['terminated', 'erased'])('a thread that is %s stays so', async (name) => {
    const { runtime, id } = await open(version)
    await expect(runtime.threads.send(await id(name), 'go on')).rejects.toMatchObject({
      code: 'THREAD_TERMINATED',
    })
  })

  test('files and values are there', async () => {
    const { runtime, id } = await open(version)
    const threadId = await id('idle')
    const { bytes } = await runtime.threads.files.read(threadId, '/note.txt')
    expect(new TextDecoder().decode(bytes)).toBe('a file and a value')
    expect(await runtime.threads.values.get(threadId, 'noted')).toBe('a file and a value')
  })

  test('calls that ran when the process died: a look runs again, a write does not', async () => {
    const { runtime, id, said, world } = await open(version)
    expect(world.done).toEqual(['look the door'])
    const [, , results, hello] = await runtime.threads.messages(await id('doubt-read'))
    expect(results?.message).toMatchObject({ results: [{ result: 'look the door' }] })
    expect(hello?.message.text).toBe('and then hello')
    expect(await said('doubt-read')).toEqual(['You said: and then hello'])
    expect((await said('doubt-write')).at(-1)).toMatch(/unknown/i)
  })

  test('a person is asked about a high-risk call that may have run', async () => {
    const { runtime, id, world } = await open(version)
    const rootId = await id('doubt-refund')
    expect(await runtime.inbox.list({ rootId })).toMatchObject([{ toolName: 'refund' }])
    expect(world.done).not.toContain('refund O-3')
  })

  test('a model that was speaking is asked again, and mail that lay there is taken', async () => {
    const { said } = await open(version)
    expect(await said('doubt-model')).toEqual(['You said: think'])
    expect(await said('mail')).toEqual(['You said: hello from before'])
  })

  test('every thread can be read: fold, document, requests, export and import', async () => {
    const { runtime } = await open(version)
    const all = await runtime.threads.list({ limit: 1000 })
    expect(all.length).toBeGreaterThan(20)
    for (const { id, lifecycle } of all) {
      await runtime.threads.folded(id)
      await runtime.threads.document(id)
      if (lifecycle === 'erased') continue // its requests are gone
      for (const { logId } of await runtime.threads.logs(id)) {
        const { messages } = await runtime.threads.log(id, logId)
        expect(messages.length).toBeGreaterThan(0)
      }
      const copy = await runtime.threads.import(await runtime.threads.export(id))
      // What was open in it is closed in the copy, which may add words.
      const texts = (await runtime.threads.messages(id)).map(({ message }) => message.text)
      const copied = (await runtime.threads.messages(copy.id)).map(({ message }) => message.text)
      expect(copied.slice(0, texts.length)).toEqual(texts)
    }
  })
})
