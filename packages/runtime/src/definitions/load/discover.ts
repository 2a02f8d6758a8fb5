import { readdir, readFile, stat } from 'node:fs/promises'
import { findPackageJSON, registerHooks } from 'node:module'
import { join, relative, resolve, sep } from 'node:path'
import { cronProblems } from '../../contract/cron.ts'
import { DefinitionError, type Problem, type Registry } from '../resolved.ts'
import { loadRegistry, replaceableRegistry } from './registry.ts'
import { type Found, type Reads, type DefinitionFile, toProblem, named } from './gather.ts'
import type { PriceSource } from './prices.ts'
import { makerOf } from './readers.ts'
import { fileURLToPath, pathToFileURL } from 'node:url'

/**
 * A registry that is loaded from files. Its definitions are those of the last load in which the files had no
 * problems.
 */
export interface DiscoveredRegistry extends Registry {
  readonly folder: string
  /**
   * Reads the files again and returns their problems. If there are any, the registry keeps its current
   * definitions.
   */
  reload(): Promise<readonly Problem[]>
  /**
   * Whether the registry depends on this file: it is a definition, or a definition imports it. True also for
   * files that do not exist yet.
   */
  reads(path: string): boolean
}

/** Options of `discover`. */
export interface DiscoverOptions {
  /** Whether warnings are treated as problems. Default false. */
  readonly strict?: boolean
  /** Prices of models whose definitions do not state them; needed for budgets in US dollars. */
  readonly prices?: PriceSource
}

/**
 * Imports every file under `agents/ prompts/ models/ tools/ hooks/ effects/ endpoints/`, each with one
 * default export, and checks all of them together.
 *
 *     const registry = await discover('./')
 */
export async function discover(
  folder: string,
  options: DiscoverOptions = {},
): Promise<DiscoveredRegistry> {
  const root = resolve(folder)
  let good = await load(root, 0, options)
  const registry = replaceableRegistry(good)
  let last: Promise<unknown> = Promise.resolve()

  async function reloadNow(): Promise<readonly Problem[]> {
    try {
      good = await load(root, ++rounds, options)
      registry.replace(good)
      return []
    } catch (error) {
      if (!(error instanceof DefinitionError)) throw error
      registry.replace({ ...good, problems: error.problems })
      return error.problems
    }
  }

  return Object.assign(registry, {
    folder: root,
    reads: (path: string) => isDefinitionFile(root, path) || importsOf(root).has(resolve(path)),
    reload(): Promise<readonly Problem[]> {
      // Reloads run one after the other, because otherwise an older version of the files could be loaded
      // last.
      const next = last.then(reloadNow)
      last = next.catch(() => undefined)
      return next
    },
  })
}

async function load(
  folder: string,
  round: number,
  { strict, prices }: DiscoverOptions,
): Promise<Registry> {
  const problems: Problem[] = []
  const found = await stat(folder).catch(() => undefined)
  if (!found?.isDirectory()) throw new DefinitionError([toProblem(folder, 'is not a folder')])
  const files = await findDefinitionFiles(folder)
  if (files.length === 0) {
    const names = Object.keys(FOLDERS).join('/, ')
    problems.push(toProblem(folder, `has no definitions; they belong in ${names}/`))
  }
  const definitions: Found[] = []
  const known = new Map<unknown, string>()
  for (const file of files) {
    const value = await importDefault(file, { folder, round }, problems)
    const definition = value === undefined ? undefined : named(value, file, problems)
    if (definition === undefined) continue
    if (!known.has(definition)) known.set(definition, file.file)
    definitions.push({ kind: file.kind, value: definition, from: file.file })
  }
  const isStrict = strict === true
  return loadRegistry(definitions, { problems, files: known, prices, isStrict })
}

/** Imports the default export of a file. If there is none, reports a problem and returns undefined. */
async function importDefault(
  { path, file, kind }: DefinitionFile,
  where: { readonly folder: string; readonly round: number },
  problems: Problem[],
): Promise<unknown> {
  try {
    for (const problem of cronProblems(await readFile(path, 'utf8')))
      problems.push(toProblem(file, problem))
    const { default: value, ...others } = await freshImport(path, where)
    if (value !== undefined) return value
    const names = Object.keys(others)
    const exported = names.length > 0 ? `; it exports ${names.join(', ')}` : ''
    const hint = `write: export default ${makerOf(kind)}({ … })`
    problems.push(toProblem(file, `has no default export${exported}; ${hint}`))
  } catch (error) {
    // A `define…` function may throw an error that contains the problems.
    if (error instanceof DefinitionError) {
      problems.push(...error.problems.map((problem) => ({ ...problem, file })))
    } else {
      problems.push(toProblem(file, importProblem(error, path)))
    }
  }
  return undefined
}

/** Says why a file cannot be imported, and what to change if that is known. */
function importProblem(error: unknown, path: string): string {
  if (!(error instanceof Error)) return 'cannot be imported: unknown error'
  const { name, message, stack = '' } = error
  if (/import statement outside a module|Unexpected token 'export'/.test(message)) {
    const manifest = findPackageJSON(pathToFileURL(path)) ?? 'package.json'
    return `cannot be imported, because the project is CommonJS: write "type": "module" in ${manifest}`
  }
  // Only the first line of a syntax error's stack says where the error is: `/path/agents/a.ts:3`.
  const [, line] = (name === 'SyntaxError' && /^.*:(\d+)\n/.exec(stack)) || []
  const [, missing] = /^Cannot find package '([^']+)'/.exec(message) ?? []
  const place = line === undefined ? '' : ` (line ${line})`
  const hint = missing === undefined ? '' : `; if it is meant, run: npm install ${missing}`
  return `cannot be imported: ${name}: ${message}${place}${hint}`
}

/** The folders of definitions, and the kind in each. */
const FOLDERS: Readonly<Record<string, keyof Reads>> = {
  agents: 'agent',
  prompts: 'prompt',
  models: 'model',
  tools: 'tool',
  hooks: 'hook',
  effects: 'effect',
  endpoints: 'endpoint',
}

/** Finds all definition files below a folder, in a fixed order. */
async function findDefinitionFiles(folder: string): Promise<readonly DefinitionFile[]> {
  const lists = await Promise.all(
    Object.entries(FOLDERS).map(async ([name, kind]) => {
      const root = join(folder, name)
      const paths = await listFiles(root)
      return paths.map((path) => ({
        kind,
        path,
        file: slashes(relative(folder, path)),
        stem: slashes(relative(root, path)).replace(ending, ''),
      }))
    }),
  )
  return lists.flat()
}

/** Whether a file with this path would be loaded as a definition of the folder. */
function isDefinitionFile(folder: string, path: string): boolean {
  const [first = '', ...rest] = relative(folder, resolve(path)).split(sep)
  const name = rest.at(-1)
  return (
    Object.hasOwn(FOLDERS, first) && name !== undefined && rest.every(isListed) && isSource(name)
  )
}

const ending = /\.(?:ts|js|mjs)$/
const ignored = /(?:\.d|\.test|\.test-d|\.spec)\.[a-z]+$/

async function listFiles(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    if ((error as { code?: unknown }).code === 'ENOENT') return [] // every folder is optional
    throw error
  })
  const lists = await Promise.all(
    entries
      .filter(({ name }) => isListed(name))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(async (entry) => {
        const path = join(folder, entry.name)
        if (entry.isDirectory()) return listFiles(path)
        return isSource(entry.name) ? [path] : []
      }),
  )
  return lists.flat()
}

function isListed(name: string): boolean {
  return !name.startsWith('.') && name !== 'node_modules'
}

function isSource(name: string): boolean {
  return ending.test(name) && !ignored.test(name)
}

function slashes(path: string): string {
  return path.split(sep).join('/')
}

/** The URL parameter that makes Node load a module again. */
const PARAMETER = 'skein-reload'
/** The files that modules of each folder import, as far as they are in the folder too. */
const imports = new Map<string, Set<string>>()
/**
 * The number of reloads of all registries in this process. The count is common, because two registries of one
 * folder must not get the same modules.
 */
let rounds = 0

/**
 * Imports a file. From round 1 (the first reload) on, the file and everything that it imports from the same
 * folder are read again: the number of the round is added to their URLs, so that Node treats them as new
 * modules. The old modules stay in memory, so this is for development only.
 */
function freshImport(
  path: string,
  { folder, round }: { readonly folder: string; readonly round: number },
): Promise<Record<string, unknown>> {
  importsOf(folder) // begins to record the imports
  const url = pathToFileURL(path)
  if (round > 0) url.searchParams.set(PARAMETER, String(round))
  return import(/* @vite-ignore */ url.href) as Promise<Record<string, unknown>>
}

/**
 * Returns the files that modules of the folder import. The first call registers a hook that records them. The
 * hook also adds the number of the reload to imports within the folder, as the importing module has it. The
 * hook stays registered, because a tool may import a module long after it was loaded.
 */
function importsOf(folder: string): ReadonlySet<string> {
  const known = imports.get(folder)
  if (known) return known
  const files = new Set<string>()
  imports.set(folder, files)
  const prefix = pathToFileURL(`${folder}/`).href
  const isInside = (url: string): boolean =>
    url.startsWith(prefix) && !url.slice(prefix.length).includes('node_modules/')
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const { parentURL = '' } = context
      // The import is recorded before it is resolved, so that a missing file is noticed when it is created.
      if (isInside(parentURL) && /^\.\.?\//.test(specifier)) {
        const url = new URL(specifier, parentURL)
        if (isInside(url.href)) files.add(fileURLToPath(url))
      }
      const resolved = nextResolve(specifier, context)
      const round = roundOf(parentURL)
      if (round === null || !isInside(resolved.url) || roundOf(resolved.url) !== null)
        return resolved
      const fresh = new URL(resolved.url)
      fresh.searchParams.set(PARAMETER, round)
      return { ...resolved, url: fresh.href }
    },
  })
  return files
}

function roundOf(url: string): string | null {
  return url.includes(PARAMETER) ? new URL(url).searchParams.get(PARAMETER) : null
}
