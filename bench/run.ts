/**
 * `npm run bench`: runs `bench/<area>/<name>.bench.ts`.
 *
 *   npm run bench -- base             those whose id contains "base"
 *   npm run bench -- --quick          a short look, no peers installed
 *   npm run bench -- --no-peers       without the contenders that need other packages
 *   npm run bench -- --save           write bench/results/<area>.json and .md as well
 *   npm run bench -- --write          put the tables into bench/README.md; continues where it was stopped
 *   npm run bench -- --minutes 12     begin no further process after so many minutes
 *   npm run bench -- --check          the few of bench/bounds.json; fails where a ratio is over its bound
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import type { Bench } from './runner/bench.ts'
import { isOurs, toMarkdown, toResultsPage } from './runner/markdown.ts'
import { installPeers } from '../scripts/peers.ts'
import { keptResults, sourceState } from './runner/kept.ts'
import { runBench } from './runner/run-bench.ts'
import type { BenchResult } from './runner/run-bench.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  allowNegative: true,
  options: {
    quick: { type: 'boolean', default: false },
    peers: { type: 'boolean', default: true },
    save: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    minutes: { type: 'string' },
    check: { type: 'boolean', default: false },
  },
})

/** Bench → our largest ratio to its baseline that is no accident. */
const bounds = JSON.parse(
  readFileSync(join(import.meta.dirname, 'bounds.json'), 'utf8'),
) as Readonly<Record<string, number>>

const benches = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => /^[a-z-]+\/[a-z0-9-]+\.bench\.ts$/.test(file))
  .map((file) => ({ id: file.replace('.bench.ts', ''), file: join(import.meta.dirname, file) }))
  .filter(({ id }) => positionals.length === 0 || positionals.some((part) => id.includes(part)))
  .filter(({ id }) => !values.check || id in bounds)
  .toSorted((a, b) => a.id.localeCompare(b.id))

const quick = values.quick || values.check
const withPeers = values.peers && !quick
const machine = `${cpus()[0]?.model.trim() ?? 'an unknown processor'} (${cpus().length} cores), Node ${process.versions.node}`
if (values.write && (quick || !withPeers || positionals.length > 0))
  throw new Error('--write publishes a whole run: without --quick, --check, --no-peers and names.')

const root = join(import.meta.dirname, '..')
const kept = values.write
  ? keptResults(join(root, '.cache/bench-results'), sourceState(root) + machine)
  : undefined
const endsAt = performance.now() + Number(values.minutes ?? Infinity) * 60_000
const isOver = (): boolean => performance.now() > endsAt
const results: BenchResult[] = []
const missing: string[] = []
for (const [place, { id, file }] of benches.entries()) {
  const known = kept?.get(id)
  if (known) {
    results.push(known)
    continue
  }
  if (isOver()) {
    missing.push(id)
    continue
  }
  const { default: bench } = (await import(pathToFileURL(file).href)) as { default: Bench }
  const needsPeers = Object.values(bench.contenders).some(({ peers = [] }) => peers.length > 0)
  if (withPeers && needsPeers) await installBenchPeers()
  // Each gets the same part of the time that is left, and at least one round of processes.
  const now = performance.now()
  const cutAt = now + (endsAt - now) / (benches.length - place)
  const isCut = (): boolean => performance.now() > cutAt
  try {
    const result = await runBench({ id, file, bench }, { quick, withPeers, isOver: isCut })
    console.log(toMarkdown([result], machine))
    results.push(result)
    kept?.keep(result)
  } catch (error) {
    // The others are measured all the same; the page says that this one is missing.
    console.error(error)
    missing.push(id)
    process.exitCode = 1
  }
}

if (values.save) {
  const folder = join(import.meta.dirname, 'results')
  mkdirSync(folder, { recursive: true })
  for (const area of new Set(results.map(({ id }) => id.split('/')[0] ?? id))) {
    const own = results.filter(({ id }) => id.startsWith(`${area}/`))
    const report = { machine, date: new Date().toISOString().slice(0, 10), results: own }
    writeFileSync(join(folder, `${area}.json`), `${JSON.stringify(report, null, 2)}\n`)
    writeFileSync(join(folder, `${area}.md`), toMarkdown(own, `${machine}, ${report.date}`))
  }
}

if (values.write) {
  const page = join(import.meta.dirname, 'README.md')
  const [before, after] = readFileSync(page, 'utf8').split(
    /(?<=<!-- results -->\n)[^]*(?=<!-- \/results -->)/,
  )
  const date = new Date().toISOString().slice(0, 10)
  writeFileSync(
    page,
    `${before}\n${toResultsPage(results, `${machine}, ${date}`, missing)}\n${after}`,
  )
}
if (missing.length > 0)
  console.log(
    `Not measured, because of an error or because the time was over: ${missing.join(', ')}`,
  )

if (values.check) {
  for (const { id, contenders } of results) {
    const ratio = contenders.find(({ name }) => isOurs(name))?.ratio ?? Infinity
    const bound = bounds[id] ?? 0
    console.log(
      `${ratio <= bound ? 'ok  ' : 'FAIL'} ${id}: ${ratio.toFixed(2)} of at most ${bound}`,
    )
    if (ratio > bound) process.exitCode = 1
  }
}

async function installBenchPeers(): Promise<void> {
  const failure = await installPeers('bench')
  if (failure !== undefined) throw new Error(`The peers cannot be installed:\n${failure}`)
}
