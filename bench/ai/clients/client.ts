import type { Contender, Timed } from '../../runner/bench.ts'
import type { FormatName } from '../mock/formats.ts'
import { startMock } from '../mock/start-mock.ts'

/** What every contender can do with the mock vendor. */
export interface Client {
  /** A waiting call; gives the text of the answer. */
  call(): Promise<string>
  /** Reads a stream token by token; in Chat Completions if no other format is named. */
  stream(model: string, onToken: (text: string) => void, format?: FormatName): Promise<void>
  /** Runs the tool `look_up` until the model answers; gives the text of the answer. */
  runTools(model: string, lookUp: (id: number) => object): Promise<string>
}

export type CreateClient = (baseUrl: string) => Promise<Client>

interface Entry {
  readonly create: () => Promise<CreateClient>
  readonly peers?: readonly string[]
}

/**
 * Imports a client whose packages only the benches install. The compiler must not follow this import: the types of
 * those packages are not there when the rest is checked.
 */
async function peerClient(file: string, name: string): Promise<CreateClient> {
  const module = (await import(new URL(file, import.meta.url).href)) as Record<string, CreateClient>
  return module[name]!
}

/** In the order of the table. Each is loaded in its own process only. */
const clients: Readonly<Record<string, Entry>> = {
  raw: { create: async () => (await import('./raw.ts')).rawClient },
  'raw-best': { create: async () => (await import('./raw-best.ts')).rawBestClient },
  skein: { create: async () => (await import('./skein.ts')).skeinClient },
  'skein (custom fetch)': { create: async () => (await import('./skein.ts')).skeinFetchClient },
  'openai sdk': {
    create: () => peerClient('./openai-sdk.ts', 'openaiClient'),
    peers: ['openai'],
  },
  'ai sdk': {
    create: () => peerClient('./ai-sdk.ts', 'aiSdkClient'),
    peers: ['ai', '@ai-sdk/openai-compatible'],
  },
  langchain: {
    create: async () => (await import('./langchain.ts')).langchainClient,
    peers: ['@langchain/openai'],
  },
}

/** The contenders that speak Chat Completions alone. */
export const chatOnly: readonly string[] = ['openai sdk', 'ai sdk', 'langchain']

/** The same repetition for every client, each with a mock vendor of its own. */
export function contenders(
  repetition: (client: Client) => Timed,
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
          return repetition(await createClient(baseUrl))
        },
      },
    ]),
  )
}
