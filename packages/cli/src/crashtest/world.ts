import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { usageError } from '../terminal/command.ts'

/** Answers a request in place of the network; undefined for a request that it does not know. */
export type World = (request: Request) => Response | undefined | Promise<Response | undefined>

/**
 * Loads a module whose default export is a function that makes a `World`. It is called for each crash point, so each
 * begins in a world in which nothing has happened.
 */
export async function loadWorld(file: string | undefined): Promise<() => World> {
  if (file === undefined) return () => () => undefined
  const path = resolve(file)
  const module = (await import(pathToFileURL(path).href).catch((error: unknown) => {
    throw usageError(`${path} cannot be loaded.`, String(error))
  })) as { readonly default?: unknown }
  const make = module.default
  const hint = 'export default () => (request) => new Response("paid")'
  if (typeof make !== 'function') throw usageError(`${path} has no world.`, hint)
  return () => {
    const world: unknown = make()
    if (typeof world !== 'function') throw usageError(`${path} makes no world.`, hint)
    return world as World
  }
}
