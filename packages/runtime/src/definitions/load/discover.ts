import { readFile, stat } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { FOLDERS, findDefinitionFiles, isDefinitionFile } from './definition-files.ts'
import { freshImport, importsOf, nextRound } from './fresh-import.ts'
import { checkedName, toProblem, type DefinitionFile } from './definition-file.ts'
import type { ListedDefinition } from './references.ts'
import type { PriceSource } from './prices.ts'
import { makerOf } from './readers.ts'
import { loadRegistry } from './registry.ts'
import { replaceableRegistry } from './replaceable-registry.ts'
import { cronProblems } from '../../contract/cron.ts'
import { DefinitionError, type Problem } from '../definition-error.ts'
import type { Registry } from '../resolved.ts'

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
      good = await load(root, nextRound(), options)
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
  const stats = await stat(folder).catch(() => undefined)
  if (!stats?.isDirectory()) throw new DefinitionError([toProblem(folder, 'is not a folder')])
  const files = await findDefinitionFiles(folder)
  if (files.length === 0) {
    const names = Object.keys(FOLDERS).join('/, ')
    problems.push(toProblem(folder, `has no definitions; they belong in ${names}/`))
  }
  const definitions: ListedDefinition[] = []
  const fileOf = new Map<unknown, string>()
  for (const file of files) {
    const value = await importDefault(file, { folder, round }, problems)
    const definition = value === undefined ? undefined : checkedName(value, file, problems)
    if (definition === undefined) continue
    if (!fileOf.has(definition)) fileOf.set(definition, file.file)
    definitions.push({ kind: file.kind, value: definition, from: file.file })
  }
  const isStrict = strict === true
  return loadRegistry(definitions, { problems, files: fileOf, prices, isStrict })
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
    const otherExports = names.length > 0 ? `; it exports ${names.join(', ')}` : ''
    const hint = `write: export default ${makerOf(kind)}({ … })`
    problems.push(toProblem(file, `has no default export${otherExports}; ${hint}`))
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
