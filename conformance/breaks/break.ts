import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'vite'

/** One way to violate a row: a change of the code that the row's own tests must notice. */
export interface Break {
  /** The clause of the row that the change violates, in our words. */
  readonly clause: string
  /**
   * Where: the folder of a package, and a function, a constant, a class or `Class.method` of it that holds the
   * change, e.g. `agents/withExchange`. If several files declare the name, a part of the path comes between:
   * `ai/wires/openai-chat/encodeRequest`. A file is named with its extension: `agents/package.json`.
   */
  readonly in: string
  /** What to replace there, which must occur exactly once, and what to put in its place. */
  readonly swap: readonly [from: string, to: string]
  /** Runs only the tests of the row in files whose path contains this, where the others take long. */
  readonly by?: string
  /** The broken code never ends: the tests have to be killed, and that counts as noticed. */
  readonly hangs?: true
}

/** The breaks of one specification by row. */
export type Breaks = Readonly<Record<string, readonly Break[]>>

/** A change of one file. */
export interface Planted {
  /** Relative to the repository. */
  readonly file: string
  readonly before: string
  readonly after: string
}

/** Names a break and everything it says, so that a record of an earlier run is known to be about it. */
export function digestOf(row: string, { in: place, swap }: Break): string {
  return createHash('sha256')
    .update(JSON.stringify([row, place, swap]))
    .digest('hex')
    .slice(0, 12)
}

/** Finds the place of a break. Throws if it is not there, so that a break is never passed over unseen. */
export function locate(root: string, { in: place, swap: [from, to] }: Break): Planted {
  const [folder = '', ...rest] = place.split('/')
  const name = rest.pop() ?? ''
  const found =
    /\.[a-z]+$/.test(name) && !/^[A-Z]\w*\.\w+$/.test(name)
      ? [{ file: join('packages', folder, ...rest, name), start: 0, end: Infinity }]
      : declarations(root, folder, rest.join('/'), name)
  const places = found.map((place) => ({
    ...place,
    text: readFileSync(join(root, place.file), 'utf8'),
  }))
  // A field and a method may have the same name, and so may functions of two files: the text decides.
  const held = places.filter(({ text, start, end }) => text.slice(start, end).includes(from))
  if (held.length !== 1)
    throw new Error(
      found.length === 0
        ? `Nothing in packages/${folder} is called ${name}.`
        : `${held.length === 0 ? 'Not' : 'In several places'} in ${name} (${[...new Set(found.map(({ file }) => file))].join(', ')}): ${JSON.stringify(from)}.`,
    )
  const { file, text: before, start, end } = held[0]!
  const text = before.slice(start, end)
  const at = text.indexOf(from)
  if (text.includes(from, at + 1))
    throw new Error(`More than once in ${name} (${file}): ${JSON.stringify(from)}.`)
  const after = before.slice(0, start + at) + to + before.slice(start + at + from.length)
  return { file, before, after }
}

interface Place {
  readonly file: string
  readonly start: number
  readonly end: number
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

/** Where the files of a package declare each name. A tree is walked once for all breaks. */
const known = new Map<string, ReadonlyMap<string, readonly Place[]>>()

function declarations(root: string, folder: string, part: string, name: string): readonly Place[] {
  const key = join(root, 'packages', folder)
  const places = known.get(key) ?? index(root, folder)
  known.set(key, places)
  return (places.get(name) ?? []).filter(({ file }) => file.includes(part))
}

function index(root: string, folder: string): Map<string, Place[]> {
  const places = new Map<string, Place[]>()
  const files = globSync(`packages/${folder}/src/**/*.{ts,tsx}`, { cwd: root })
  for (const file of files.filter((path) => !/\.test(-d)?\.tsx?$/.test(path)).toSorted()) {
    const { program } = parseSync(file, readFileSync(join(root, file), 'utf8'))
    const note = (name: string, { start, end }: Node): void => {
      places.set(name, [
        ...(places.get(name) ?? []),
        { file: file.replaceAll('\\', '/'), start, end },
      ])
    }
    for (const node of program.body as unknown as readonly Node[]) {
      const declared = (node['declaration'] as Node | null | undefined) ?? node
      for (const [name, at] of namesOf(declared)) note(name, at)
    }
  }
  return places
}

/** The names that a statement declares; those of a class with its members, as `Class.method`. */
function namesOf(node: Node): readonly (readonly [string, Node])[] {
  const nameOf = (id: unknown): string => (id as { readonly name?: string } | null)?.name ?? ''
  switch (node.type) {
    case 'VariableDeclaration':
      return (node['declarations'] as readonly Node[]).map((one) => [nameOf(one['id']), node])
    case 'ClassDeclaration': {
      const name = nameOf(node['id'])
      const members = (node['body'] as Node)['body'] as readonly Node[]
      const own = members.map(
        (member) => [`${name}.${nameOf(member['key'])}`, member] as readonly [string, Node],
      )
      return [[name, node], ...own]
    }
    case 'FunctionDeclaration':
    case 'TSInterfaceDeclaration':
    case 'TSTypeAliasDeclaration':
      return [[nameOf(node['id']), node]]
    default:
      return []
  }
}
