/**
 * `npm run house`: how much there is to read, package by package. The same counts that `npm run check`
 * holds to their bounds (scripts/check/house.ts).
 *
 *   --in PATH       only files whose path contains PATH
 *   --once          list private functions that are used once
 *   --longest       list the longest functions
 *   --small         list files under 40 lines that exactly one file imports
 */
import { parseArgs } from 'node:util'
import { measure, type SourceFile } from './house/measure.ts'
import { root } from './workspace.ts'

const { values } = parseArgs({
  options: {
    in: { type: 'string', default: '' },
    once: { type: 'boolean', default: false },
    longest: { type: 'boolean', default: false },
    small: { type: 'boolean', default: false },
  },
})

const everything = measure(root)
const files = everything.filter(({ path }) => path.includes(values.in))

console.log(
  row([
    '',
    'files',
    'lines',
    'median',
    'p90',
    'max',
    'fn p90',
    'fn max',
    'comments',
    'docs',
    'spreads',
    'casts',
    'once/1k',
    'lone',
  ]),
)
for (const [name, list] of grouped(({ path }) => path.split('/')[1] ?? path))
  console.log(row([name, ...counts(list)]))
console.log(row(['all', ...counts(files)]))

for (const [folder, list] of grouped(({ path }) => path.replace(/\/[^/]*$/, '')))
  if (list.length > 20) console.log(`${folder} holds ${list.length} files`)
console.log(`exported names declared in more than one file: ${declaredTwice(files).length}`)

if (values.once)
  for (const { path, usedOnce } of files)
    for (const { name, lines } of usedOnce) console.log(`${path}: ${name} (${lines} lines)`)
if (values.longest)
  for (const { path, name, lines } of files
    .flatMap(({ path, functions }) => functions.map((one) => ({ path, ...one })))
    .toSorted((a, b) => b.lines - a.lines)
    .slice(0, 25))
    console.log(`${lines} ${path}: ${name}`)
if (values.small)
  for (const { path, lines } of files)
    if (lines < 40 && readersOf(path).length === 1)
      console.log(`${path} (${lines} lines), read by ${readersOf(path)[0]}`)

function grouped(keyOf: (file: SourceFile) => string): Map<string, SourceFile[]> {
  const groups = new Map<string, SourceFile[]>()
  for (const file of files) groups.set(keyOf(file), [...(groups.get(keyOf(file)) ?? []), file])
  return groups
}

function readersOf(path: string): string[] {
  return everything
    .filter(({ imports }) => imports.some((one) => one.path === path))
    .map((file) => file.path)
}

function declaredTwice(list: readonly SourceFile[]): string[] {
  const seen = new Map<string, number>()
  for (const { exports } of list)
    for (const name of new Set(exports.map((one) => one.name)))
      seen.set(name, (seen.get(name) ?? 0) + 1)
  return [...seen].filter(([, times]) => times > 1).map(([name]) => name)
}

function counts(list: readonly SourceFile[]): string[] {
  const lines = list.map((file) => file.lines).toSorted((a, b) => a - b)
  const total = lines.reduce((sum, one) => sum + one, 0)
  const lengths = list
    .flatMap(({ functions }) => functions.map((one) => one.lines))
    .toSorted((a, b) => a - b)
  const exported = list.flatMap(({ exports }) => exports)
  const sum = (of: (file: SourceFile) => number): number =>
    list.reduce((all, file) => all + of(file), 0)
  const percent = (part: number, whole: number): string => `${Math.round((100 * part) / whole)} %`
  return [
    list.length,
    total,
    at(lines, 0.5),
    at(lines, 0.9),
    lines.at(-1) ?? 0,
    at(lengths, 0.9),
    lengths.at(-1) ?? 0,
    percent(
      sum((file) => file.comments),
      total,
    ),
    percent(exported.filter(({ documented }) => documented).length, exported.length),
    sum((file) => file.conditionalSpreads),
    sum((file) => file.casts),
    ((1000 * sum((file) => file.usedOnce.length)) / total).toFixed(1),
    list.filter(({ path, lines: own }) => own < 40 && readersOf(path).length === 1).length,
  ].map(String)
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.floor((sorted.length - 1) * share)] ?? 0
}

function row(cells: readonly string[]): string {
  return cells.map((cell, i) => (i === 0 ? cell.padEnd(11) : cell.padStart(9))).join('')
}
