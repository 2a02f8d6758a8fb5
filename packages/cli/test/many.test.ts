import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { messageToJSON, UserMessage } from '@skein/ai'
import { createRuntime, type EmbeddedRuntime, sqliteStore } from '@skein/runtime'
import { serve, type Serving } from '@skein/server'
import { threadList } from '../src/commands/thread-list.ts'
import { threadShow } from '../src/commands/thread-show.ts'
import { capturedOutput } from './output.ts'

const THREADS = 1300
const MESSAGES = 1100
const idOf = (index: number): string =>
  `01928000-0000-7000-8000-${(0xabc0_0000_0000 + index * 7919).toString(16)}`
const folder = mkdtempSync(join(tmpdir(), 'skein-many-'))
let runtime: EmbeddedRuntime
let serving: Serving

beforeAll(async () => {
  const store = sqliteStore({ path: join(folder, 'skein.db') })
  const at = new Date(0).toISOString()
  const messages = Array.from({ length: MESSAGES }, (_, index) => ({
    type: 'message_added',
    at,
    turnId: 't',
    side: 'b',
    message: messageToJSON(new UserMessage(`message ${index}`)),
  }))
  await store.commit({
    point: 'fill',
    threads: Array.from({ length: THREADS }, (_, index) => {
      const id = idOf(index)
      const who = { tenant: 'default', owner: null, clientId: null, agent: 'helper' }
      const create = { ...who, parentId: null, rootId: id, title: null, tags: [], createdAt: index }
      return { id, create, append: index === 0 ? (messages as never) : [] }
    }),
  })
  runtime = await createRuntime({ agents: [], store, secretKey: new Uint8Array(32) })
  const local = { tenant: 'default', scopes: ['admin'] } as const
  serving = await serve(runtime, { port: 0, auth: 'none', local })
})
afterAll(async () => {
  await serving.close({ graceMs: 0 })
  await runtime.stop({ graceMs: 0 })
  rmSync(folder, { recursive: true })
})

async function run(command: typeof threadShow, operands: string[], values: object = {}) {
  const captured = capturedOutput()
  const { output } = captured
  await command.run({ values: { url: serving.url, ...values }, operands, output })
  return captured
}

test('thread show prints all messages of a long thread, which is found by the end of its id', async () => {
  // The oldest of all threads, so it is not among the first 1,000 of a list.
  const { lines } = await run(threadShow, [idOf(0).slice(-8)])
  const shown = lines.filter((line) => line.includes('message '))
  expect(shown).toHaveLength(MESSAGES)
  expect(shown.at(-1)).toContain(`message ${MESSAGES - 1}`)
  const { values } = await run(threadShow, [idOf(0)], { json: true })
  expect((values[0] as { messages: unknown[] }).messages).toHaveLength(MESSAGES)
})

test('a text that many ids begin with is refused, and one that no id has', async () => {
  await expect(run(threadShow, ['01928'])).rejects.toMatchObject({ code: 'THREAD_AMBIGUOUS' })
  await expect(run(threadShow, ['none'])).rejects.toMatchObject({ code: 'THREAD_NOT_FOUND' })
  await expect(run(threadShow, ['x'])).rejects.toMatchObject({ code: 'THREAD_NOT_FOUND' })
})

test('thread list shows short ids that differ and that name their threads', async () => {
  const { lines } = await run(threadList, [], { limit: '1000' })
  const ids = lines.map((line) => line.split(' ')[0]!)
  expect(new Set(ids).size).toBe(1000)
  expect(Math.max(...ids.map((id) => id.length))).toBeLessThan(13)
  const { values } = await run(threadShow, [ids.at(-1)!], { json: true })
  expect((values[0] as { thread: { id: string } }).thread.id).toBe(idOf(THREADS - 1000))
})
