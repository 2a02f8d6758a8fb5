import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** One requirement: its id, where the specification says it, and a short title of our own. */
export interface Row {
  readonly id: string
  readonly section: string
  readonly title: string
}

/** The rows of one specification. */
export interface Spec {
  readonly spec: string
  readonly version: string
  readonly rows: readonly Row[]
}

const files = ['upp', 'uap', 'uaicp', 'tp', 'sa']

/** All specifications, in the order in which the packages build on each other. */
export function loadSpecs(): Spec[] {
  const folder = join(import.meta.dirname, '..', 'rows')
  return files.map((name) => JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as Spec)
}

const leadingId = /^(?:UPP|UAP|UAICP|TP|SA)-V?\d+\b/
const separator = /^(?:[\s,;:&+/]|and\b)+/

/**
 * The row ids at the beginning of a test's title: `'UPP-004 UPP-005 params pass'` names two. An id
 * further on is prose and proves nothing.
 */
export function rowsNamedBy(title: string): string[] {
  const ids: string[] = []
  let rest = title
  for (;;) {
    const id = leadingId.exec(rest)?.[0]
    if (id === undefined) return [...new Set(ids)]
    ids.push(id)
    rest = rest.slice(id.length).replace(separator, '')
  }
}
