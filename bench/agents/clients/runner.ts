import type { Contender } from '../../runner/bench.ts'
import { startMock } from '../start-mock.ts'

/** A task: the model plays it, the tools do the looking up. */
export interface Task {
  /** Of the mock vendor. */
  readonly model: string
  readonly toolCount: number
  readonly lookUp: (id: number) => object
}

/** Runs an agent until it has its answer; gives the text. */
export type RunAgent = (task: Task) => Promise<string>
export type CreateRunner = (baseUrl: string) => Promise<RunAgent>

export const prompt = 'Look it all up, please.'

export const parameters = {
  type: 'object',
  properties: { id: { type: 'number' }, query: { type: 'string' } },
  required: ['id', 'query'],
  additionalProperties: false,
} as const

export const toolNames = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `look_up_${index}`)

interface Entry {
  readonly create: () => Promise<CreateRunner>
  readonly peers?: readonly string[]
}

/**
 * Imports a client whose packages only the benches install. The compiler must not follow this import: the types of
 * those packages are not there when the rest is checked.
 */
async function peerClient(file: string, name: string): Promise<CreateRunner> {
  const module = (await import(new URL(file, import.meta.url).href)) as Record<string, CreateRunner>
  return module[name]!
}

/** In the order of the table. Each is loaded in its own process only. */
const runners: Readonly<Record<string, Entry>> = {
  raw: { create: async () => (await import('./raw.ts')).rawRunner },
  skein: { create: async () => (await import('./skein.ts')).skeinRunner },
  'skein (checkpoints)': { create: async () => (await import('./skein.ts')).skeinSavingRunner },
  'ai sdk': {
    create: () => peerClient('./ai-sdk.ts', 'aiSdkRunner'),
    peers: ['ai', '@ai-sdk/openai-compatible'],
  },
  'openai agents': {
    create: () => peerClient('./openai-agents.ts', 'openaiAgentsRunner'),
    peers: ['@openai/agents', 'openai'],
  },
  langgraph: {
    create: async () => (await import('./langgraph.ts')).langgraphRunner,
    peers: ['@langchain/langgraph', '@langchain/openai'],
  },
  'langgraph (memory)': {
    create: async () => (await import('./langgraph.ts')).langgraphSavingRunner,
    peers: ['@langchain/langgraph', '@langchain/openai'],
  },
}

/** A run of so many rounds with so many concurrent calls, for every runner but some. */
export function runs(
  { rounds, calls }: { readonly rounds: number; readonly calls: number },
  without: readonly string[] = [],
): Readonly<Record<string, Contender>> {
  const entries = Object.entries(runners).filter(([name]) => !without.includes(name))
  return Object.fromEntries(
    entries.map(([name, { create, peers }]) => [
      name,
      {
        ...(peers && { peers }),
        async prepare() {
          const [createRunner, baseUrl] = await Promise.all([create(), startMock()])
          const run = await createRunner(baseUrl)
          return async () => {
            let ran = 0
            const text = await run({
              model: `rounds-${rounds}-${calls}`,
              toolCount: calls,
              lookUp: (id) => {
                ran++
                return { id, title: 'A thread', tags: ['long', 'red'] }
              },
            })
            return { ran, text }
          }
        },
      },
    ]),
  )
}
