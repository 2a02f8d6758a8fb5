import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root, run } from '../../scripts/workspace.ts'
import { type Bench, measured, type Timed } from '../runner/bench.ts'

const count = 100

/** A program with many tools whose results are read by name; with `isPlain` it only runs the tools. */
function program(isPlain: boolean): string {
  const names = Array.from({ length: count }, (_, index) => `tool_${index}`)
  const tools = names.map(
    (name, index) => `
const ${name} = tool({
  name: '${name}',
  description: 'Tool ${index}.',
  parameters: z.object({ city: z.string(), days_${index}: z.number().optional() }),
  run: ({ city }) => ({ city, at: new Date(0), value_${index}: ${index} }),
})`,
  )
  const list = names.join(', ')
  const cases = names.map(
    (name, index) =>
      `    case '${name}':
      sum += one.result.value_${index} + (one.arguments.days_${index} ?? 0)
      break`,
  )
  return `import { llm, tool, type Tool } from '@skein/ai'
import { scripted } from '@skein/ai/testing'
import { z } from 'zod'
${tools.join('')}
const tools${isPlain ? ': readonly Tool[]' : ''} = [${list}]
const turn = await llm({ model: scripted([]), tools }).generate('x')
let sum = 0
for (const one of turn.toolExecutions) {
  if (one.isError) continue
${isPlain ? '  sum += one.duration' : `  switch (one.toolName) {\n${cases.join('\n')}\n  }`}
}
export const total: number = sum
`
}

/** Prepares the check of one program; a repetition returns the seconds that the compiler reports for checking. */
async function prepare(name: string, source: string): Promise<Timed> {
  const folder = join(root, '.tmp', `types-${name}-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const config = {
    extends: relative(folder, join(root, 'tsconfig.base.json')),
    compilerOptions: { noEmit: true, allowImportingTsExtensions: true },
    files: ['source.ts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  writeFileSync(join(folder, 'source.ts'), source)
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  return async () => {
    const args = [tsc, '-p', folder, '--extendedDiagnostics', '--singleThreaded']
    const { code, output } = await run(process.execPath, args, { quiet: true })
    if (code !== 0) throw new Error(output)
    const [, seconds] = /Check time:\s+([\d.]+)s/.exec(output) ?? []
    return measured(Number(seconds), { code })
  }
}

const bench: Bench = {
  title: `checking the types of ${count} tools whose results are read by name`,
  baseline: 'the same tools, results unknown',
  measure: 'returned',
  unit: 's',
  warmups: 1,
  repetitions: 3,
  processes: 1,
  contenders: {
    'the same tools, results unknown': { prepare: () => prepare('plain', program(true)) },
    'results by tool name': { prepare: () => prepare('named', program(false)) },
  },
}

export default bench
