import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isPlainObject } from '@skein/base'
import { findDefinitionFiles, FOLDERS, type DefinitionFile } from './definition-files-node.ts'
import { DefinitionError } from './definition-error.ts'
import { freshImport, nextRound } from './fresh-import-node.ts'
import { loadRegistry } from './registry.ts'
import { replaceableRegistry } from './replaceable-registry.ts'
import type { Found } from './load/gather.ts'
import type { Problem, Registry } from './resolved.ts'

/** A registry made of files. It always shows the last state of the files that was right. */
export interface DiscoveredRegistry extends Registry {
  readonly folder: string
  /**
   * Reads the files anew and answers what is wrong with them. While anything is, the registry stays
   * what it was.
   */
  reload(): Promise<readonly Problem[]>
}

export interface DiscoverOptions {
  /** Makes problems of warnings. Default false. */
  readonly strict?: boolean
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
  const registry = replaceableRegistry(await load(root, 0, options))
  let last: Promise<unknown> = Promise.resolve()

  async function reloadNow(): Promise<readonly Problem[]> {
    try {
      registry.replace(await load(root, nextRound(), options))
      return []
    } catch (error) {
      if (error instanceof DefinitionError) return error.problems
      throw error
    }
  }

  return Object.assign(registry, {
    folder: root,
    reload(): Promise<readonly Problem[]> {
      // One after the other, or an older state of the files could win.
      const next = last.then(reloadNow)
      last = next.catch(() => undefined)
      return next
    },
  })
}

async function load(folder: string, round: number, { strict }: DiscoverOptions): Promise<Registry> {
  const problems: Problem[] = []
  await checkFolder(folder)
  const files = await findDefinitionFiles(folder)
  if (files.length === 0) {
    const names = Object.keys(FOLDERS).join('/, ')
    problems.push(toProblem(folder, `has no definitions; they belong in ${names}/`))
  }
  const found: Found[] = []
  const known = new Map<unknown, string>()
  for (const file of files) {
    const value = await importDefault(file, { folder, round }, problems)
    const definition = value === undefined ? undefined : named(value, file, problems)
    if (definition === undefined) continue
    if (!known.has(definition)) known.set(definition, file.file)
    found.push({ kind: file.kind, value: definition, from: file.file })
  }
  return loadRegistry(found, { problems, files: known, isStrict: strict === true })
}

async function checkFolder(folder: string): Promise<void> {
  const found = await stat(folder).catch(() => undefined)
  if (!found?.isDirectory()) throw new DefinitionError([toProblem(folder, 'is not a folder')])
}

/** The default export; undefined, with the reason among the problems, when there is none. */
async function importDefault(
  { path, file }: DefinitionFile,
  where: { readonly folder: string; readonly round: number },
  problems: Problem[],
): Promise<unknown> {
  try {
    const { default: value, ...others } = await freshImport(path, where)
    if (value !== undefined) return value
    const names = Object.keys(others)
    const hint = names.length > 0 ? `; it exports ${names.join(', ')}` : ''
    problems.push(toProblem(file, `has no default export${hint}`))
  } catch (error) {
    // A definition may refuse to be made; it says itself what is wrong.
    if (error instanceof DefinitionError) {
      problems.push(...error.problems.map((problem) => ({ ...problem, file })))
    } else {
      const reason = error instanceof Error ? `${error.name}: ${error.message}` : 'unknown error'
      problems.push(toProblem(file, `cannot be imported: ${reason}`))
    }
  }
  return undefined
}

function toProblem(file: string, message: string): Problem {
  return { subject: file, field: '', message, file }
}

/** Tools and effects must be called like their files; an endpoint may take its route from the file. */
function named(value: unknown, file: DefinitionFile, problems: Problem[]): unknown {
  if (file.kind === 'endpoint') return toEndpoint(value, file, problems)
  if (file.kind !== 'tool' && file.kind !== 'effect') return value
  const expected = file.stem.split('/').at(-1)
  const name = isPlainObject(value) ? value['name'] : undefined
  if (typeof name === 'string' && name !== expected) {
    const subject = `${file.kind} "${name}"`
    const message = `must be "${expected}", like its file`
    problems.push({ subject, field: 'name', message, file: file.file })
  }
  return value
}

const route = /^(?<path>.*?)\.(?<method>get|post|put|patch|delete)$/

function toEndpoint(value: unknown, { stem, file }: DefinitionFile, problems: Problem[]): unknown {
  const { path = '', method = '' } = route.exec(stem)?.groups ?? {}
  const expected = { path: path.replace(/(^|\/)index$/, ''), method: method.toUpperCase() }
  if (method === '') {
    problems.push(toProblem(file, 'must name its method, e.g. orders.get.ts'))
  }
  if (method === '') return undefined
  if (typeof value === 'function') {
    return Object.freeze({ kind: 'endpoint', ...expected, execute: value })
  }
  if (!isPlainObject(value)) return value
  for (const field of ['path', 'method'] as const) {
    const given = value[field]
    if (typeof given !== 'string' || given === expected[field]) continue
    const message = `must be "${expected[field]}", like its file`
    problems.push({ subject: file, field, message, file })
  }
  return value
}
