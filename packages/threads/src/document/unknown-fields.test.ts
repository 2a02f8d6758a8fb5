import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fullThread } from '../../test/samples.ts'
import { offloadContent, restoreContent, type ContentStore } from './content-ref.ts'
import {
  diffThreads,
  forkThread,
  keepJsonText,
  parseThread,
  redactThread,
  stringifyThread,
  toModelMessages,
  type Thread,
} from '../index.ts'
import { MemoryLogStorage, openThreadLog } from '../log/thread-log.ts'
import { migrateThread } from './migrate.ts'

const runs = process.env['SKEIN_DEEP'] ? 2_000 : 60

/** The sample with an unknown field, number text included, in each of its objects. */
function marked(name: string): Thread {
  const mark = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(mark)
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value).map(([key, item]) => [key, mark(item)])
    return Object.fromEntries([...entries, [`x-${name}`, '#'], ['7', '#']])
  }
  const document = fullThread()
  const text = JSON.stringify({
    ...(mark({ ...document, agents: {} }) as object),
    agents: Object.fromEntries(
      Object.entries(document.agents).map(([id, agent]) => [id, mark(agent)]),
    ),
  })
  return parseThread(text.replaceAll('"#"', '18.0'))
}

test(
  'TP-52 unknown fields and number text survive every operation on threads',
  { timeout: 120_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 6 }), async (name) => {
        const thread = marked(name)
        const before = stringifyThread(thread)
        expect(before).toContain('18.0')
        for (const [operation, after] of await everyOperation(thread)) {
          expect([operation, after]).toEqual([operation, before])
        }
        expect(stringifyThread(thread)).toBe(before)
      }),
      { seed: 52, numRuns: runs },
    )
  },
)

async function everyOperation(thread: Thread): Promise<[string, string][]> {
  const contents = new Map<string, Uint8Array>()
  const store: ContentStore = {
    put: (uri, bytes) => void contents.set(uri, bytes),
    get: (uri) => contents.get(uri),
  }
  const offloaded = await offloadContent(thread, { store, minBytes: 1 })
  toModelMessages(thread, 'ada')
  diffThreads(thread, thread)
  return [
    ['parse', stringifyThread(parseThread(stringifyThread(thread)))],
    ['migrate', stringifyThread(migrateThread(stringifyThread(thread)).value)],
    [
      'redact nothing',
      stringifyThread(redactThread(thread, { secrets: ['nowhere to be found'] }).thread),
    ],
    ['content ref', stringifyThread(await restoreContent(offloaded, store))],
    ['log', await throughLog(thread)],
    ['fork', forked(thread)],
  ]
}

/** A fork with its own id, times and links taken back. */
function forked(thread: Thread): string {
  const { thread_id, created_at, updated_at } = thread
  const fork = forkThread(thread)
  const { parent_thread_id, relationships, ...rest } = fork
  expect([parent_thread_id, relationships?.links.length]).toEqual([thread_id, 1])
  return stringifyThread(keepJsonText(fork, { ...rest, thread_id, created_at, updated_at }))
}

/** The log derives `updated_at`, so that field is taken from the source. */
async function throughLog(thread: Thread): Promise<string> {
  const storage = new MemoryLogStorage()
  const log = await openThreadLog(storage, { thread })
  for (const turn of thread.turns) await log.append(turn)
  const { turns } = (await openThreadLog(storage)).thread()
  return stringifyThread(keepJsonText(thread, { ...thread, turns }))
}
