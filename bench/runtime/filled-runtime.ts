import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  readSqliteStore,
  sqliteStore,
  type SqliteStore,
  type Store,
  type StoreRow,
  type ThreadChange,
} from '@skein/runtime'
import { createHttp, type Http } from '@skein/server'
import {
  copyOfWaiting,
  type WaitingThread,
  writeThreads,
} from '../../packages/runtime/test/filled-store.ts'
import { longThread } from './long-thread.ts'

export const KEY = 'key-of-the-bench-0123456789'
export const USER_KEY = 'key-of-one-user-0123456789'
const secretKey = new Uint8Array(32)

const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: () => 'paid',
})
const desk = defineAgent({
  name: 'desk',
  sideA: {
    prompt: definePrompt({
      name: 'desk',
      prompt: 'Help.',
      model: scripted(() => calls('refund', { amount: 5 })),
      tools: [refund],
    }),
  },
})

/** The agent of the long thread: see `longThread`. A copy of the thread needs an agent of this name. */
const helper = defineAgent({
  name: 'helper',
  sideA: {
    prompt: definePrompt({ name: 'helper', prompt: 'Help.', model: scripted(() => says('Yes.')) }),
  },
})

/** A runtime with many threads behind its HTTP handler. */
export interface FilledRuntime {
  readonly size: number
  readonly runtime: EmbeddedRuntime
  readonly http: Http
  /** The thread with a log of `size` events. */
  readonly long: string
  /** The thread with an audit log of `size` lines. */
  readonly audited: string
  /** The thread with a tenth of all threads as its children. */
  readonly family: string
  close(): Promise<void>
}

/** A store with the rows of another one, and what ends it. */
export interface CopiedStore {
  readonly store: Store
  end(): Promise<void>
}

/**
 * Fills a store in a SQLite file with `size` threads, of which a tenth wait for an approval, an audit log of as many
 * lines and a thread of as many events. With `copy`, the runtime uses a copy of that store.
 */
export async function filledRuntime(
  size: number,
  copy?: (rows: Iterable<StoreRow>) => Promise<CopiedStore>,
): Promise<FilledRuntime> {
  const { folder, id: long } = await longThread(size)
  const path = join(folder, 'skein.db')
  const started = performance.now()
  const file = sqliteStore({ path })
  await fill(file, size)
  const copied = copy && (await copyOf(path, file, copy))
  console.error(`${size}: filled in ${((performance.now() - started) / 1000).toFixed(0)} s`)
  const store = copied?.store ?? file
  const runtime = await createRuntime({ agents: [desk, helper], store, secretKey })
  await runtime.start()
  const limits = { requestsPerMinute: 1e9, requestsPerMinutePerAddress: 1e9 }
  const scopes = ['threads:read', 'threads:write', 'logs:read'] as const
  const keys = [
    { key: KEY, tenant: 'acme', scopes: ['admin'] as const },
    { key: USER_KEY, tenant: 'acme', user: 'user 7', scopes },
  ]
  return {
    size,
    runtime,
    http: createHttp(runtime, { limits, auth: { keys } }),
    long,
    audited: threadId(1),
    family: threadId(0),
    async close() {
      await runtime.stop({ graceMs: 0 })
      await copied?.end()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function copyOf(
  path: string,
  file: SqliteStore,
  copy: (rows: Iterable<StoreRow>) => Promise<CopiedStore>,
): Promise<CopiedStore> {
  await file.close()
  const from = readSqliteStore(path)
  try {
    return await copy(from.rows())
  } finally {
    await from.close()
  }
}

async function fill(store: SqliteStore, size: number): Promise<void> {
  const first = await waitingThread()
  const lifecycles = ['idle', 'idle', 'idle', 'failed', 'stopped', 'terminated'] as const
  const ids = Array.from({ length: size }, (_, index) => threadId(index))
  for (let from = 0; from < size; from += 1000) {
    const changes = ids.slice(from, from + 1000).map((own, at): ThreadChange => {
      const index = from + at
      const parent = parentOf(index)
      const create = {
        owner: `user ${index % 100}`,
        parentId: parent === undefined ? null : threadId(parent),
        rootId: parent === undefined ? own : threadId(parent),
        title: index % 5000 === 7 ? `A needle ${index}` : `Conversation about order ${index}`,
        tags: index % 2 === 0 ? ['half'] : index % 1000 === 1 ? ['rare'] : [],
        clientId: `client ${index}`,
      }
      // Activity is in another order than creation.
      const time = 1_700_000_000_000 + ((index * 7919) % size) * 1000
      const change = copyOfWaiting(first, own, { at: time, ...create })
      if (index % 10 === 0) return change
      const lifecycle = lifecycles[index % lifecycles.length]!
      return { ...change, append: change.append!.slice(0, 4), head: { lifecycle } }
    })
    await writeThreads(store, changes)
  }
  for (let from = 0; from < size; from += 1000) {
    const audit = Array.from({ length: Math.min(1000, size - from) }, (_, at) => {
      const seq = from + at
      const text = 'x'.repeat(700)
      const line = JSON.stringify({ entry_id: `entry ${seq}`, sequence: seq, text })
      return { tree: threadId(1), requestId: 'bench', seq, line }
    })
    await store.commit({ point: 'fill', threads: [], audit })
  }
}

/** Every tenth thread is a child of the first one, and some have a child of their own. */
function parentOf(index: number): number | undefined {
  if (index % 10 === 5) return 0
  return index % 4 === 3 ? index - 3 : undefined
}

/** Runs a thread, in a store of its own, until it waits for an approval. */
async function waitingThread(): Promise<WaitingThread> {
  const store = sqliteStore({ path: ':memory:' })
  const runtime = await createRuntime({ agents: [desk], store, secretKey })
  await runtime.start()
  const { threads } = runtime
  const { id } = await threads.create({ agent: 'desk', tenant: 'acme' })
  const { waiting } = await threads.run(id, 'refund, please')
  const events = (await threads.events(id)).map(({ event }) => event)
  await runtime.stop({ graceMs: 0 })
  return { threadId: id, interruptId: waiting[0]!.interruptId, events }
}

export function threadId(index: number): string {
  return `01900000-0000-7000-8000-${String(index).padStart(12, '0')}`
}
