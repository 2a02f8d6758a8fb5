import type { Client } from '@skein/runtime/client'
import type { Output } from '../output.ts'
import { loadDefinitions, modelsOf } from './definitions.ts'
import { clientOf, openRuntime } from './embed.ts'
import { answers, readServerFile } from './server-file.ts'

/** A runtime, wherever it is. */
export interface Connection {
  readonly client: Client
  /** Absent when the runtime is in this process, and ends with it. */
  readonly url?: string
  close(): Promise<void>
}

export interface Target {
  readonly url?: string | undefined
  readonly key?: string | undefined
  readonly folder?: string | undefined
}

/**
 * Finds the runtime: the named server, the one that runs in this folder, or none, and then this process
 * opens the store itself. `works` says whether threads should be worked on here; to look is not to work.
 */
export async function connect(
  { url, key, folder }: Target,
  output: Output,
  { works }: { readonly works: boolean },
): Promise<Connection> {
  const address = url ?? process.env['SKEIN_URL'] ?? (await runningServer())
  if (address !== undefined) {
    const { createClient } = await import('@skein/runtime/client')
    const apiKey = key ?? process.env['SKEIN_KEY']
    const client = createClient({ url: address, ...(apiKey !== undefined && { apiKey }) })
    return { client, url: address, close: async () => undefined }
  }
  const registry = await loadDefinitions(folder)
  const runtime = await openRuntime(registry, (error) => output.say(`error: ${wordsOf(error)}`))
  if (works) {
    output.say(output.paint('dim', modelsOf(registry)))
    await runtime.start()
  }
  const client = await clientOf(runtime)
  return { client, close: () => runtime.stop({ graceMs: 0 }) }
}

/** Connects, does the work, and lets go whatever happens. */
export async function withConnection<T>(
  target: Target,
  output: Output,
  work: (connection: Connection) => Promise<T>,
  { works = false }: { readonly works?: boolean } = {},
): Promise<T> {
  const connection = await connect(target, output, { works })
  try {
    return await work(connection)
  } finally {
    await connection.close()
  }
}

async function runningServer(): Promise<string | undefined> {
  const server = readServerFile()
  return server && (await answers(server.url)) ? server.url : undefined
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
