import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Contender, Timed } from '../../runner/bench.ts'
import { startMock } from '../start-mock.ts'

/** Threads that are kept in a file. */
export interface Client {
  /** Sends a message to a thread, made if it is not there, and gives the answer. */
  turn(thread: string, message: string): Promise<string>
}

export interface ClientOptions {
  /** Prefix of the mock vendor. */
  readonly baseUrl: string
  /** A new folder for the database. */
  readonly folder: string
  readonly lookUp: (id: number) => object
}

export type CreateClient = (options: ClientOptions) => Promise<Client>

interface Entry {
  readonly create: () => Promise<CreateClient>
  readonly peers?: readonly string[]
}

/** In the order of the table. Each is loaded in its own process only. */
const clients: Readonly<Record<string, Entry>> = {
  'by hand': { create: async () => (await import('./by-hand.ts')).byHandClient },
  'by hand, same facts': {
    create: async () => (await import('./by-hand-facts.ts')).byHandFactsClient,
  },
  skein: { create: async () => (await import('./skein.ts')).skeinClient },
  langgraph: {
    create: async () => (await import('./langgraph.ts')).langgraphClient,
    peers: ['@langchain/langgraph', '@langchain/openai', '@langchain/langgraph-checkpoint-sqlite'],
  },
  mastra: {
    create: async () => (await import('./mastra.ts')).mastraClient,
    peers: ['@mastra/core', '@mastra/memory', '@mastra/libsql', '@ai-sdk/openai-compatible'],
  },
}

export const parameters = {
  type: 'object',
  properties: { id: { type: 'number' }, query: { type: 'string' } },
  required: ['id', 'query'],
} as const

export const instructions = 'You look things up.'

/** A folder that goes with the process. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'skein-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** What a repetition can look at, besides the answers. */
export interface Seen {
  readonly lookUps: number
  readonly folder: string
}

/** The same repetition for every client, each with a mock vendor and a database of its own. */
export function contenders(
  repetition: (client: Client, seen: Seen) => Timed,
  without: readonly string[] = [],
): Readonly<Record<string, Contender>> {
  const entries = Object.entries(clients).filter(([name]) => !without.includes(name))
  return Object.fromEntries(
    entries.map(([name, { create, peers }]) => [
      name,
      {
        ...(peers && { peers }),
        async prepare() {
          const [createClient, baseUrl] = await Promise.all([create(), startMock()])
          const folder = newFolder()
          const seen = { lookUps: 0, folder }
          const lookUp = (id: number): object => {
            seen.lookUps++
            return { id, title: 'A thread', tags: ['long', 'red'] }
          }
          return repetition(await createClient({ baseUrl, folder, lookUp }), seen)
        },
      },
    ]),
  )
}
