import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root, run } from '../../scripts/workspace.ts'
import { type Bench, measured, type Timed } from '../runner/bench.ts'

const count = 100

const names = Array.from({ length: count }, (_, index) => `tool_${index}`)

type Reading = 'by switch' | 'by if' | 'not by name'

/** Reads the results of `list`. A chain of `if` without `else` is what costs TypeScript most. */
function reader(list: string, reading: Reading): string {
  const add = (index: number): string =>
    `sum += one.result.value_${index} + (one.arguments.days_${index} ?? 0)`
  const bodies = {
    'by switch': `  switch (one.toolName) {
${names.map((name, index) => `    case '${name}':\n      ${add(index)}\n      break`).join('\n')}
  }`,
    'by if': names
      .map((name, index) => `  if (one.toolName === '${name}') ${add(index)}`)
      .join('\n'),
    'not by name': '  sum += one.duration',
  }
  return `let sum = 0
for (const one of ${list}) {
  if (one.isError) continue
${bodies[reading]}
}
export const total: number = sum
`
}

/** A program with many tools whose results are read. */
function program(reading: Reading): string {
  const tools = names.map(
    (name, index) => `
const ${name} = tool({
  name: '${name}',
  description: 'Tool ${index}.',
  parameters: z.object({ city: z.string(), days_${index}: z.number().optional() }),
  run: ({ city }) => ({ city, at: new Date(0), value_${index}: ${index} }),
})`,
  )
  return `import { llm, tool, type Tool } from '@skein/ai'
import { scripted } from '@skein/ai/testing'
import { z } from 'zod'
${tools.join('')}
const tools${reading === 'not by name' ? ': readonly Tool[]' : ''} = [${names.join(', ')}]
const turn = await llm({ model: scripted([]), tools }).generate('x')
${reader('turn.toolExecutions', reading)}`
}

/** The same results as a union that someone wrote by hand, without any library: TypeScript's own cost. */
function handWritten(): string {
  const members = names.map(
    (name, index) => `
  | { readonly toolName: '${name}'; readonly toolCallId: string; readonly isError: false; readonly duration: number
      readonly arguments: { readonly city: string; readonly days_${index}?: number }
      readonly result: { readonly city: string; readonly at: string; readonly value_${index}: number } }`,
  )
  return `type Execution =${members.join('')}
  | { readonly toolName: string; readonly toolCallId: string; readonly isError: true; readonly duration: number
      readonly arguments: object; readonly result: string }
declare const executions: readonly Execution[]
${reader('executions', 'by if')}`
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
    'the same tools, results unknown': { prepare: () => prepare('plain', program('not by name')) },
    'results by tool name, a switch': { prepare: () => prepare('switch', program('by switch')) },
    'results by tool name, a chain of if': { prepare: () => prepare('if', program('by if')) },
    'a chain of if over a hand-written union, no library': {
      prepare: () => prepare('union', handWritten()),
    },
  },
}

export default bench
