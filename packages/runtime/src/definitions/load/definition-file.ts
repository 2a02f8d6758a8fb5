import { isPlainObject } from '@skein/base'
import type { Reads } from './definition-index.ts'
import type { Problem } from '../definition-error.ts'

/** A file that should export one definition. */
export interface DefinitionFile {
  readonly kind: keyof Reads
  readonly path: string
  /** The path relative to the searched folder, with forward slashes. */
  readonly file: string
  /** The path relative to the folder of its kind, without the extension: `orders/[id].get`. */
  readonly stem: string
}

/** Creates a problem of a file as a whole. */
export function toProblem(file: string, message: string): Problem {
  return { subject: file, field: '', message, file }
}

/** Checks that tools and effects have the names of their files, and converts handlers to endpoints. */
export function checkedName(value: unknown, file: DefinitionFile, problems: Problem[]): unknown {
  if (file.kind === 'endpoint') return toEndpoint(value, file, problems)
  if (file.kind !== 'tool' && file.kind !== 'effect') return value
  const stemName = file.stem.split('/').at(-1)
  const name = isPlainObject(value) ? value['name'] : undefined
  if (typeof name === 'string' && name !== stemName) {
    const subject = `${file.kind} "${name}"`
    const message = `must be "${stemName}", like its file`
    problems.push({ subject, field: 'name', message, file: file.file })
  }
  return value
}

const route = /^(?<path>.*?)\.(?<method>get|post|put|patch|delete)$/

function toEndpoint(value: unknown, { stem, file }: DefinitionFile, problems: Problem[]): unknown {
  const { path = '', method = '' } = route.exec(stem)?.groups ?? {}
  const address = { path: path.replace(/(^|\/)index$/, ''), method: method.toUpperCase() }
  if (method === '') {
    problems.push(toProblem(file, 'must name its method, e.g. orders.get.ts'))
  }
  if (method === '') return undefined
  if (typeof value === 'function') {
    return Object.freeze({ kind: 'endpoint', ...address, execute: value })
  }
  if (!isPlainObject(value)) return value
  for (const field of ['path', 'method'] as const) {
    const text = value[field]
    if (typeof text !== 'string' || text === address[field]) continue
    const message = `must be "${address[field]}", like its file`
    problems.push({ subject: file, field, message, file })
  }
  return value
}
