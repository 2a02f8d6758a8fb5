/**
 * `node scripts/stats.ts`: how much there is to read, package by package. The counts inform; none of them has a limit.
 *
 *   --in PATH         only files whose path contains PATH
 *   --unconnected     list the files with unconnected groups of declarations
 *   --knots           list the files that import each other, types included
 *   --once            list private functions that are used once
 *   --longest         list the longest functions
 *   --json            print the counts as JSON
 */
import { parseArgs } from 'node:util'
import { findFileKnots } from './check/cycles.ts'
import { findUnconnectedFiles } from './check/unconnected.ts'
import { isParticiple, measure, type SourceFile } from './source/measure.ts'
import { publicNames } from './source/public-names.ts'
import { root } from './workspace.ts'

const { values } = parseArgs({
  options: {
    in: { type: 'string', default: '' },
    unconnected: { type: 'boolean', default: false },
    knots: { type: 'boolean', default: false },
    once: { type: 'boolean', default: false },
    longest: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})

const files = measure(root).filter(({ path }) => path.includes(values.in))
const names = publicNames()
const knots = findFileKnots(files)
const unconnected = findUnconnectedFiles(root, files)
const packageNames = [...new Set(files.map(({ path }) => path.split('/')[1]!))]
const table = [
  ...packageNames.map((name) => ({
    package: name,
    ...countsOf(files.filter(({ path }) => path.startsWith(`packages/${name}/`))),
  })),
  { package: 'all', ...countsOf(files) },
]

if (values.json) console.log(JSON.stringify(table, null, 2))
else printTable()
if (values.unconnected) printUnconnected()
if (values.knots) for (const knot of knots) console.log(`${knot.length}: ${knot.join(', ')}`)
if (values.once)
  for (const { path, usedOnce } of files)
    for (const { name, lines } of usedOnce) console.log(`${path}: ${name} (${lines} lines)`)
if (values.longest) printLongest()

/** The counts of some files; the keys are the headings of the table. */
function countsOf(list: readonly SourceFile[]): Record<string, number> {
  const lines = list.map((file) => file.lines).toSorted((a, b) => a - b)
  const functions = list
    .flatMap((file) => file.functions.map((one) => one.lines))
    .toSorted((a, b) => a - b)
  const sum = (count: (file: SourceFile) => number): number =>
    list.reduce((total, file) => total + count(file), 0)
  const paths = new Set(list.map(({ path }) => path))
  const publicHere = names.filter(({ declaredIn }) => paths.has(declaredIn))
  return {
    files: list.length,
    lines: sum((file) => file.lines),
    'file p90': at(lines, 0.9),
    longest: lines.at(-1) ?? 0,
    '285–300': lines.filter((count) => count >= 285 && count <= 300).length,
    functions: functions.length,
    'function p90': at(functions, 0.9),
    'longest function': functions.at(-1) ?? 0,
    'used once': sum((file) => file.usedOnce.length),
    'public names': new Set(publicHere.map(({ entry, name }) => `${entry} ${name}`)).size,
    exported: sum((file) => file.exports.length),
    undocumented: sum((file) => file.exports.filter(({ documented }) => !documented).length),
    spreads: sum((file) => file.conditionalSpreads),
    casts: sum((file) => file.casts),
    'local variables': sum((file) => file.locals.length),
    'named by participle': sum((file) => file.locals.filter(isParticiple).length),
    comments: sum((file) => file.comments),
    unconnected: unconnected.filter(({ path }) => paths.has(path)).length,
    knots: knots.filter(([first]) => paths.has(first!)).length,
    'largest knot': Math.max(
      0,
      ...knots.filter(([first]) => paths.has(first!)).map((knot) => knot.length),
    ),
  }
}

/** One row per count and one column per package: there are more counts than a terminal is wide. */
function printTable(): void {
  const columns = table.map((counts) => counts.package)
  const width = Math.max(...columns.map((name) => name.length)) + 2
  const row = (name: string, cells: readonly unknown[]): string =>
    name.padEnd(20) + cells.map((cell) => String(cell).padStart(width)).join('')
  console.log(row('', columns))
  for (const count of Object.keys(table[0]!).filter((key) => key !== 'package'))
    console.log(
      row(
        count,
        table.map((counts) => (counts as Record<string, unknown>)[count]),
      ),
    )
}

function printUnconnected(): void {
  for (const { path, groups } of unconnected) {
    const shown = groups.map(
      ({ names: own, lines }) => `${own.slice(0, 3).join(', ')} (${lines} lines)`,
    )
    console.log(`${path}: ${shown.join(' | ')}`)
  }
}

function printLongest(): void {
  const longest = files
    .flatMap(({ path, functions }) => functions.map((one) => ({ path, ...one })))
    .toSorted((a, b) => b.lines - a.lines)
    .slice(0, 25)
  for (const { path, name, lines } of longest) console.log(`${lines} ${path}: ${name}`)
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.floor((sorted.length - 1) * share)] ?? 0
}
