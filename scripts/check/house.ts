import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { measure, type SourceFile } from '../house/measure.ts'
import { publicNames, type PublicName } from '../house/public-names.ts'
import { readJson } from '../workspace.ts'

/** What `house.json` allows. */
export interface HouseRules {
  /** Bounds of the counts that `npm run house` prints. */
  readonly bounds: Readonly<Record<Bound, number>>
  /**
   * Packages that joined the first seven. Their files and public names have bounds of their own and are not
   * counted in `bounds`, so that a new package neither uses up nor loosens those of the others.
   */
  readonly joined: Readonly<
    Record<string, { readonly files: number; readonly publicNames: number }>
  >
  /** For each room (folder) the rooms of its package whose code it may import. */
  readonly doors: Readonly<Record<string, readonly string[]>>
  /** Exported names that several files may declare, by reason. */
  readonly declaredTwice: Readonly<Record<string, readonly string[]>>
  /** Public names that mean different things in different packages, because specifications say so. */
  readonly homonyms: readonly string[]
}

type Bound =
  | 'files'
  | 'filesPerFolder'
  | 'fileLinesP90'
  | 'functionLinesP90'
  | 'functionLines'
  | 'usedOncePerThousandLines'
  | 'conditionalSpreads'
  | 'publicNames'

/** Problems with the plan of the house: rooms, doors, names and sizes. */
export function findHouseProblems(root: string): string[] {
  const rules = readJson(join(root, 'scripts/check/house.json')) as HouseRules
  const files = measure(root)
  const names = publicNames()
  return [
    ...boundProblems(files, names, rules),
    ...doorProblems(files, rules),
    ...cycleProblems(files),
    ...doubleProblems(files, rules),
    ...homonymProblems(names, rules),
    ...proseProblems(root, files),
  ]
}

function boundProblems(
  files: readonly SourceFile[],
  names: readonly PublicName[],
  { bounds, joined }: HouseRules,
): string[] {
  const isFirst = (folder: string | undefined): boolean =>
    !(folder !== undefined && folder in joined)
  const firstFiles = files.filter(({ path }) => isFirst(path.split('/')[1]))
  const firstNames = names.filter(({ declaredIn }) => isFirst(declaredIn.split('/')[1]))
  const lines = files.map((file) => file.lines).toSorted((a, b) => a - b)
  const total = lines.reduce((sum, one) => sum + one, 0)
  const functions = files.flatMap((file) => file.functions.map((one) => one.lines))
  const sorted = functions.toSorted((a, b) => a - b)
  const folders = new Map<string, number>()
  for (const { path } of files) folders.set(roomOf(path), (folders.get(roomOf(path)) ?? 0) + 1)
  const [fullest = '', most = 0] = [...folders].toSorted(([, a], [, b]) => b - a)[0] ?? []
  const once = files.reduce((sum, file) => sum + file.usedOnce.length, 0)
  const measured: Record<Bound, readonly [number, string]> = {
    files: [firstFiles.length, 'source files'],
    filesPerFolder: [most, `files in ${fullest}`],
    fileLinesP90: [at(lines, 0.9), 'lines in nine of ten files'],
    functionLinesP90: [at(sorted, 0.9), 'lines in nine of ten functions'],
    functionLines: [sorted.at(-1) ?? 0, 'lines in the longest function'],
    usedOncePerThousandLines: [
      (1000 * once) / total,
      'private functions used once, per 1,000 lines',
    ],
    conditionalSpreads: [
      files.reduce((sum, file) => sum + file.conditionalSpreads, 0),
      'conditional spreads',
    ],
    publicNames: [count(firstNames), 'public names'],
  }
  const beyond = (value: number, what: string, limit: number): string[] => {
    const shown = Number.isInteger(value) ? value : value.toFixed(1)
    return value > limit ? [`${shown} ${what}; the bound is ${limit} (house.json).`] : []
  }
  return [
    ...Object.entries(measured).flatMap(([bound, [value, what]]) =>
      beyond(value, what, bounds[bound as Bound]),
    ),
    ...Object.entries(joined).flatMap(([folder, limits]) => {
      const own = files.filter(({ path }) => path.startsWith(`packages/${folder}/`))
      const ownNames = names.filter(({ declaredIn }) =>
        declaredIn.startsWith(`packages/${folder}/`),
      )
      return [
        ...beyond(own.length, `source files in packages/${folder}`, limits.files),
        ...beyond(count(ownNames), `public names in packages/${folder}`, limits.publicNames),
      ]
    }),
  ]
}

function count(names: readonly PublicName[]): number {
  return new Set(names.map(({ entry, name }) => `${entry} ${name}`)).size
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.floor((sorted.length - 1) * share)] ?? 0
}

/** The folder of a file; `packages/ai/src` itself is the room of the package's main words. */
function roomOf(path: string): string {
  return path.replace(/\/[^/]*$/, '')
}

/** The public list of an entry opens every door: it is no room and holds no code. */
function isPublicList(path: string): boolean {
  return path.endsWith('/index.ts')
}

function doorProblems(files: readonly SourceFile[], { doors }: HouseRules): string[] {
  const used = new Set<string>()
  const problems = files
    .filter(({ path }) => !isPublicList(path))
    .flatMap(({ path, imports }) => {
      const from = roomOf(path)
      return imports
        .filter(({ byType }) => !byType)
        .filter(({ path: to }) => {
          used.add(`${from} ${roomOf(to)}`)
          return roomOf(to) !== from && !(doors[from] ?? []).includes(roomOf(to))
        })
        .map(
          (to) =>
            `${path} imports ${to.path}: there is no door from ${from} to ${roomOf(to.path)} (doors in house.json).`,
        )
    })
  const unused = Object.entries(doors).flatMap(([from, rooms]) =>
    rooms
      .filter((to) => !used.has(`${from} ${to}`))
      .map((to) => `house.json has a door from ${from} to ${to} that nothing uses.`),
  )
  return [...problems, ...unused]
}

/** Cycles of rooms and of files, by imports of code; types may point both ways. */
function cycleProblems(files: readonly SourceFile[]): string[] {
  const byFile = new Map<string, Set<string>>()
  const byRoom = new Map<string, Set<string>>()
  for (const { path, imports } of files) {
    if (isPublicList(path)) continue
    for (const { path: to, byType } of imports) {
      if (byType) continue
      link(byFile, path, to)
      if (roomOf(path) !== roomOf(to)) link(byRoom, roomOf(path), roomOf(to))
    }
  }
  return [
    ...cyclesIn(byRoom).map((cycle) => `Folders import each other: ${cycle.join(' → ')}.`),
    ...cyclesIn(byFile).map((cycle) => `Files import each other: ${cycle.join(' → ')}.`),
  ]
}

function link(graph: Map<string, Set<string>>, from: string, to: string): void {
  graph.set(from, (graph.get(from) ?? new Set()).add(to))
}

/** One cycle through each knot of the graph (a strongly connected part), shortest first. */
function cyclesIn(graph: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const reported = new Set<string>()
  const cycles: string[][] = []
  for (const start of graph.keys()) {
    if (reported.has(start)) continue
    const before = new Map<string, string>()
    const queue = [start]
    for (let node = queue.shift(); node !== undefined; node = queue.shift()) {
      for (const next of graph.get(node) ?? []) {
        if (next === start) {
          const cycle = [start]
          let back: string | undefined = node
          while (back !== undefined && back !== start) {
            cycle.unshift(back)
            back = before.get(back)
          }
          cycle.unshift(start)
          cycle.forEach((one) => reported.add(one))
          cycles.push(cycle)
          queue.length = 0
          break
        }
        if (!before.has(next)) {
          before.set(next, node)
          queue.push(next)
        }
      }
    }
  }
  return cycles.toSorted((a, b) => a.length - b.length)
}

function doubleProblems(files: readonly SourceFile[], { declaredTwice }: HouseRules): string[] {
  const allowed = new Set(Object.values(declaredTwice).flat())
  const places = new Map<string, string[]>()
  for (const { path, exports } of files)
    for (const name of new Set(exports.map((one) => one.name)))
      places.set(name, [...(places.get(name) ?? []), path])
  return [...places]
    .filter(([name, paths]) => paths.length > 1 && !allowed.has(name))
    .map(
      ([name, paths]) =>
        `"${name}" is exported by ${paths.join(' and ')}; one of them needs another name.`,
    )
}

function homonymProblems(names: readonly PublicName[], { homonyms }: HouseRules): string[] {
  const places = new Map<string, Set<string>>()
  for (const { name, declaredIn } of names)
    if (declaredIn.startsWith('packages/') && name !== 'default')
      places.set(name, (places.get(name) ?? new Set()).add(declaredIn))
  return [...places]
    .filter(([name, files]) => files.size > 1 && !homonyms.includes(name))
    .map(
      ([name, files]) =>
        `The public name "${name}" means different things: ${[...files].join(', ')}.`,
    )
}

const specifications =
  /(UPP|UAP|UAICP|ThreadProtocol|Standard Agents|RFC \d+|FIPS|FIPS|SemConv|ISO|HTML|JSON Schema|Draft)/

/** Comments that cite a section without its specification, or a numbered note no clone contains. */
function proseProblems(root: string, files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path }) =>
    readFileSync(join(root, path), 'utf8')
      .split('\n')
      .flatMap((line, index, all) => {
        const where = `${path}:${index + 1}`
        // The name of a specification may stand at the end of the line before.
        const near = `${all[index - 1] ?? ''} ${line.replace(/^\s*\*\s*/, '')}`
        if (/\((?:A|D)-?\d{1,2}[a-z]?\)|\b[AD]\d{1,2}: |UAP A\d+|\bA-\d\d\b/.test(line))
          return [`${where} cites a numbered note that is not in the repository.`]
        if (/§/.test(line) && !specifications.test(near))
          return [`${where} cites a section without naming its specification.`]
        return []
      }),
  )
}
