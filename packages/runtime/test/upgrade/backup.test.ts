import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createRuntime, type EmbeddedRuntime } from '../../src/runtime.ts'
import { sqliteStore, type SqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { parkedAgents, type World } from './parked-agents.ts'
import { DOOR_KEY } from './parked-installation.ts'

const root = mkdtempSync(join(tmpdir(), 'skein-backup-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const THREADS = 20
const MESSAGES = 4

async function open(folder: string, world: World): Promise<EmbeddedRuntime> {
  const runtime = await createRuntime({
    ...parkedAgents(world),
    folder,
    keepsSecretKeyWithData: true,
  })
  await runtime.start()
  return runtime
}

const call = (tool: string, args: object): string => `call ${tool} ${JSON.stringify(args)}`
const look = (at: string): string => call('look', { at })

/** Results of the calls of a thread, in order. */
async function answers(runtime: EmbeddedRuntime, threadId: string): Promise<string[]> {
  const messages = await runtime.threads.messages(threadId)
  return messages.flatMap(({ message }) =>
    message.type === 'tool_result' ? message.results.map(({ result }) => String(result)) : [],
  )
}

test('a backup taken while 20 threads work is a whole store: all of it goes on elsewhere', async () => {
  const from = join(root, 'from')
  const to = join(root, 'to')
  const here: World = { done: [] }
  const first = await open(from, here)
  const ids = await Promise.all(
    Array.from({ length: THREADS }, async (_, index) => {
      const { id } = await first.threads.create({
        agent: 'clerk',
        clientId: `thread ${index}`,
        message:
          index % 2 === 0 ? look(`${index}.0`) : call('helper', { message: look(`${index}.0`) }),
      })
      return id
    }),
  )
  // Half of them call children; all get mail while they work.
  const working = Promise.all(
    ids.map(async (id, index) => {
      for (let number = 1; number <= MESSAGES; number++)
        await first.threads.run(id, look(`${index}.${number}`))
    }),
  )
  let wasAsked = 0
  const some = new Promise<void>((resolve) => {
    here.during = async () => void (++wasAsked === THREADS && resolve())
  })
  await some
  cpSync(join(from, 'keys'), join(to, 'keys'), { recursive: true })
  await (first.store as SqliteStore).backup(join(to, 'skein.db'))
  const atBackup = here.done.length
  await working
  await first.idle()
  expect(atBackup).toBeLessThan(here.done.length)

  const copy = sqliteStore({ path: join(to, 'skein.db') })
  expect(await copy.check()).toEqual([])
  for (const id of ids) {
    const head = (await copy.head(id))!
    const events = await copy.events(id)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    expect(head.seq).toBe(events.length)
    // Every child that a parent knows of is there, and every blob that an event names.
    for (const { event } of events) {
      if (event.type === 'subagent_created')
        expect(await copy.head(event.reference)).toMatchObject({ parentId: id })
      if (event.type === 'model_requested') expect(await copy.blob(event.frame)).toBeDefined()
    }
  }
  await copy.close()

  const there: World = { done: [] }
  const second = await open(to, there)
  await second.idle()
  for (const [index, id] of ids.entries()) {
    const before = await answers(second, id)
    // What it has is what the first one has: the same results in the same order, none twice.
    const all = await answers(first, id)
    expect(before).toEqual(all.slice(0, before.length))
    expect((await second.threads.get(id)).lifecycle).toBe('idle')
    const { outcome } = await second.threads.run(id, look(`again ${index}`))
    expect(outcome).toBe('completed')
    expect((await answers(second, id)).at(-1)).toBe(`look again ${index}`)
  }
  await second.stop()
  await first.stop()
})

test('secrets open with the copied keys, and are refused with a clear error without them', async () => {
  const from = join(root, 'secrets')
  const world: World = { done: [] }
  const first = await open(from, world)
  const { id } = await first.threads.create({ agent: 'porter', secrets: { DOOR_KEY } })
  const store = first.store as SqliteStore
  const withKeys = join(root, 'with-keys')
  const withoutKeys = join(root, 'without-keys')
  cpSync(join(from, 'keys'), join(withKeys, 'keys'), { recursive: true })
  await store.backup(join(withKeys, 'skein.db'))
  await store.backup(join(withoutKeys, 'skein.db'))
  await first.stop()

  const good = await open(withKeys, world)
  const { text } = await good.threads.run(id, 'call count_key {}')
  expect(text).toBe(`It came to: ${DOOR_KEY.length} letters`)
  await good.stop()

  const bad = await open(withoutKeys, world)
  const refused = { code: 'ENV_INVALID', hint: expect.stringContaining('another key') as string }
  const opening = bad.withState(id, (state) => state.env('DOOR_KEY'))
  await expect(opening).rejects.toMatchObject(refused)
  // A tool that needs it fails by itself; the rest of the thread goes on.
  const told = await bad.threads.run(id, 'call count_key {}')
  expect(told.text).toBe(`It came to: The sealed value of ${id}/DOOR_KEY cannot be opened.`)
  expect((await bad.threads.run(id, 'hello')).text).toBe('You said: hello')
  await bad.stop()
})
