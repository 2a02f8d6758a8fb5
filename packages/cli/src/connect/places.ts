import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** Where the store, its keys and the address of the server lie. */
export function stateFolder(): string {
  return resolve('.skein')
}

export function storeFile(): string {
  return join(stateFolder(), 'skein.db')
}

/** The definitions to use: those that were named, those of this folder, or the examples. */
export function definitionsFolder(named: string | undefined): string {
  if (named !== undefined) return resolve(named)
  return existsSync(resolve('agents')) ? resolve('.') : exampleAgents()
}

/** Published beside this code; in a clone they are where people look for examples. */
export function exampleAgents(): string {
  const published = join(import.meta.dirname, '..', 'example-agents')
  return existsSync(published)
    ? published
    : join(import.meta.dirname, '..', '..', '..', '..', 'examples', 'agents')
}
