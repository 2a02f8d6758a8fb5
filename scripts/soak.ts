// Mixed load on a server process, and what it holds in the end:
//   node --conditions=@skein/source scripts/soak.ts --minutes 60 --seed 1 [--rate 16] [--held 300] [--save]
// Exit code 1 when the heap after collection grew by more than a tenth from the first third to the end, when a
// job of the load failed, or when the server reported an error. See docs/soak.md.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createClient } from '@skein/server/client'
import { startLoad, unread, type LoadReport } from './soak/load.ts'
import { KEY, type Held } from './soak/protocol.ts'
import { Server } from './soak/server-process.ts'
import type { ConstructorTotal } from './soak/snapshot.ts'
import { startVendor } from './soak/vendor.ts'
import { root } from './workspace.ts'

const MOST_GROWTH = 1.1

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    rate: { type: 'string', default: '16' },
    /** Threads with which the table of what is held is measured. */
    held: { type: 'string', default: '300' },
    save: { type: 'boolean', default: false },
  },
})
const minutes = Number(values.minutes)
/** Once a minute in a run of an hour. */
const SAMPLES = minutes >= 30 ? 60 : 12
const folder = mkdtempSync(join(tmpdir(), 'skein-soak-'))
const vendor = await startVendor()
try {
  const lines = await soak()
  console.log(lines.join('\n'))
  if (values.save) save(lines)
} finally {
  vendor.close()
  rmSync(folder, { recursive: true, force: true })
}

interface Sample extends Held {
  readonly minute: number
}

async function soak(): Promise<string[]> {
  const server = await Server.start(join(folder, 'soak'), vendor.url)
  const load = startLoad(server.url, {
    rate: Number(values.rate),
    seed: Number(values.seed),
    slowMs: Math.min(45_000, minutes * 10_000), // longer than the server waits for a reader
  })
  const everyMs = (minutes * 60_000) / SAMPLES
  const samples: Sample[] = []
  const rests: Rest[] = []
  for (let index = 1; index <= SAMPLES; index++) {
    await sleep(everyMs)
    const sample = { minute: (index * minutes) / SAMPLES, ...(await server.held()) }
    samples.push(sample)
    console.log(lineOf(sample, load.report()))
    if (index !== SAMPLES / 3 && index !== SAMPLES) continue
    // What jobs hold while they run differs from moment to moment; what they leave behind does not.
    await load.rest()
    await sleep(2000)
    rests.push({ held: await server.held(), picture: await server.picture() })
    if (index < SAMPLES) load.resume()
  }
  await server.stop()
  return report({ samples, rests, perThing: await holdings(), load: load.report() })
}

/** The server while nothing runs. */
interface Rest {
  readonly held: Held
  readonly picture: readonly ConstructorTotal[]
}

interface Findings {
  readonly samples: readonly Sample[]
  readonly rests: readonly Rest[]
  readonly perThing: readonly string[]
  readonly load: LoadReport
}

/** The report, and with it the verdict of the run. */
function report({ samples, rests, perThing, load }: Findings): string[] {
  const [early, late] = rests.map(({ held }) => held.heap) as [number, number] // after a third, at the end
  const growth = late / early
  const { errors } = rests.at(-1)!.held
  const { cpuMs } = samples.at(-1)!
  const problems = [
    ...(growth > MOST_GROWTH ? [`The heap grew by ${((growth - 1) * 100).toFixed(1)} %.`] : []),
    ...(load.failures.length > 0 ? [`${load.failures.length} jobs failed.`] : []),
    ...(errors > 0 ? [`The server reported ${errors} errors.`] : []),
  ]
  process.exitCode = problems.length > 0 ? 1 : 0
  const core = (100 * cpuMs) / (minutes * 60_000)
  return [
    `${minutes} min, seed ${values.seed}, ${values.rate} jobs/s, Node ${process.version}; the server used ${core.toFixed(0)} % of a core.`,
    '',
    `Heap after collection, at rest: ${mb(early)} MB after a third, ${mb(late)} MB at the end: ${growth.toFixed(2)}x (bound ${MOST_GROWTH}x).`,
    '',
    '| minute | heap MB | external MB | resident MB | handles | longest stall ms |',
    '| --- | --- | --- | --- | --- | --- |',
    ...samples
      .filter((_, index) => (index + 1) % (SAMPLES / 12) === 0)
      .map(
        ({ minute, heap, external, rss, handles, stallMs }) =>
          `| ${minute.toFixed(1)} | ${mb(heap)} | ${mb(external)} | ${mb(rss)} | ${handles} | ${stallMs.toFixed(0)} |`,
      ),
    '',
    '| job | times |',
    '| --- | --- |',
    ...Object.entries(load.done).map(([name, count]) => `| ${name} | ${count} |`),
    `| left out, because too many ran | ${load.leftOut} |`,
    `| failed | ${load.failures.length} |`,
    '',
    ...perThing,
    '',
    '| constructor (largest at the end) | count, a third | MB, a third | count, end | MB, end |',
    '| --- | --- | --- | --- | --- |',
    ...picturesOf(rests),
    '',
    problems.length > 0 ? problems.join(' ') : 'Nothing grew, nothing failed.',
    ...load.failures.slice(0, 20).map((failure) => `- ${failure.slice(0, 400)}`),
  ]
}

function picturesOf(rests: readonly Rest[]): string[] {
  const [early = [], late = []] = rests.map(({ picture }) => picture)
  const before = new Map(early.map((total) => [total.name, total]))
  return late.slice(0, 25).map(({ name, count, bytes }) => {
    const { count: had = 0, bytes: held = 0 } = before.get(name) ?? {}
    return `| ${name.replaceAll('|', '\\|')} | ${had} | ${mb(held)} | ${count} | ${mb(bytes)} |`
  })
}

/** What a server holds per thread, turn and stream, each measured alone. */
async function holdings(): Promise<string[]> {
  const threads = Number(values.held)
  const place = join(folder, 'holdings')
  const server = await Server.start(place, vendor.url)
  const client = createClient({ url: server.url, apiKey: KEY })
  const lines = ['| held by | heap bytes each | resident bytes each |', '| --- | --- | --- |']
  let last = await server.held()
  const note = async (what: string, count: number): Promise<void> => {
    const now = await server.held()
    const each = (key: 'heap' | 'rss'): number => Math.round((now[key] - last[key]) / count)
    lines.push(`| ${what} (${count}) | ${each('heap')} | ${each('rss')} |`)
    last = now
  }
  // The first turns also compile and fill caches; they are not what a thread holds.
  const warm = await client.threads.create({ agent: 'desk' })
  for (let index = 0; index < 50; index++) await client.threads.run(warm.id, 'hello')
  await client.threads.remove(warm.id)
  last = await server.held()
  const ids: string[] = []
  for (let index = 0; index < threads; index++)
    ids.push((await client.threads.create({ agent: 'desk' })).id)
  await note('a thread without messages', threads)
  for (const id of ids) await client.threads.run(id, 'hello')
  await note('the first turn of a thread', threads)
  for (let round = 0; round < 3; round++)
    for (const id of ids) await client.threads.run(id, 'hello')
  await note('a further turn', 3 * threads)
  const abort = new AbortController()
  const open = ids.slice(0, 200).map(async (id) => {
    const { seq } = await client.threads.get(id)
    const events = client.stream(id, { after: String(seq), signal: abort.signal })
    for await (const event of events) void event
  })
  await sleep(1500)
  await note('an open, quiet stream', open.length)
  abort.abort()
  await Promise.all(open)
  await sleep(500)
  await note('a stream that was closed', open.length)
  const holdMs = Math.min(8000, minutes * 20_000)
  const slow = Array.from({ length: 20 }, () => unread(server.url, client, { holdMs }))
  await sleep(holdMs * 0.75)
  await note('a reader that does not read, of a 1 MB answer', slow.length)
  await Promise.all(slow)
  await server.stop()
  const again = await Server.start(place, vendor.url)
  const { heap } = await again.held()
  await again.stop()
  const empty = await Server.start(join(folder, 'empty'), vendor.url)
  const { heap: least } = await empty.held()
  await empty.stop()
  lines.push(
    `| a stored thread after a restart (${threads}) | ${Math.round((heap - least) / threads)} | |`,
  )
  return lines
}

function lineOf({ minute, heap, rss, handles, stallMs }: Sample, { done, failures }: LoadReport) {
  const jobs = Object.values(done).reduce((sum, count) => sum + count, 0)
  return `${minute.toFixed(1)} min: heap ${mb(heap)} MB, resident ${mb(rss)} MB, ${handles} handles, stall ${stallMs.toFixed(0)} ms, ${jobs} jobs, ${failures.length} failed`
}

/** Puts the report between the two marks of the page. */
function save(lines: readonly string[]): void {
  const page = join(root, 'docs', 'soak.md')
  const [before, after] = readFileSync(page, 'utf8').split(
    /(?<=<!-- report -->\n)[^]*(?=<!-- end -->)/,
  )
  writeFileSync(page, `${before}\n${lines.join('\n')}\n\n${after}`)
}

function mb(bytes: number): string {
  return (bytes / 1e6).toFixed(1)
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))
}
