import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import type { Bench } from './bench.ts'
import { runBench } from './run-bench.ts'
import type { BenchResult, RunBenchOptions } from './run-bench.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-bench-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function runSource(
  contenders: string,
  options: Partial<RunBenchOptions> = {},
): Promise<BenchResult> {
  const file = join(folder, `${Math.abs(contenders.length)}.bench.ts`)
  writeFileSync(
    file,
    `import { measured } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, 'bench.ts')).href)}
     export default { title: 'T', baseline: 'a', measure: 'returned', unit: 'pid', contenders: { ${contenders} } }\n`,
  )
  const { default: bench } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as {
    default: Bench
  }
  return runBench({ id: 'x/t', file, bench }, { quick: true, withPeers: false, ...options })
}

test('each contender has a process of its own, and peers are left out unless wanted', async () => {
  const result = await runSource(`
    a: { prepare: () => () => measured(process.pid, 1) },
    b: { prepare: () => () => measured(process.pid, 1) },
    c: { peers: ['left'], prepare: () => () => measured(1, 1) },`)
  const pids = result.contenders.map(({ median }) => median)
  expect(result.contenders.map(({ name }) => name)).toEqual(['a', 'b'])
  expect(new Set([...pids, process.pid]).size).toBe(3)
  expect(result.contenders[0]).toMatchObject({ ratio: 1, samples: 3 })
})

test('a contender with another output is refused, unless it says so', async () => {
  await expect(
    runSource(
      `a: { prepare: () => () => measured(1, 'x') }, b: { prepare: () => () => measured(1, 'y') }`,
    ),
  ).rejects.toThrow('b and a give different outputs')
  const floor = await runSource(
    `a: { prepare: () => () => measured(2, 'x') }, b: { sameOutput: false, prepare: () => () => measured(1, 'y') }`,
  )
  expect(floor.contenders[1]).toMatchObject({ name: 'b', ratio: 0.5 })
})

test('a bench whose time is over ends after its first round of processes', async () => {
  const fast = 'a: { prepare: () => () => measured(1, 1) },  '
  const short = await runSource(fast, { quick: false, isOver: () => true })
  const whole = await runSource(`${fast} `, { quick: false })
  expect(short.contenders[0]?.samples).toBe(15)
  expect(whole.contenders[0]?.samples).toBe(45)
})
