import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import type { ModelReference } from '@skein/ai'
import { calls, says, scripted, type ScriptedModel } from '@skein/ai/testing'
import {
  createRegistry,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStore,
  type Registry,
  type Store,
} from '@skein/runtime'
import { z } from 'zod'

/** The agents of the tests: each has one place in which a deploy may change something. */
export interface DeskChange {
  readonly instructions?: string
  readonly schema?: boolean
  readonly transform?: boolean
  readonly risk?: 'read_only' | 'write_low_risk' | 'write_high_risk'
  readonly model?: ModelReference
}

/** Definitions whose tools leave a line in a file, which is the world outside the process. */
export function deskRegistry(
  world: string,
  models: (agent: string) => ModelReference,
  change: DeskChange = {},
): Registry {
  const tool = (agent: string) =>
    defineTool({
      name: `${agent}_book`,
      description: agent === 'schema' && change.schema ? 'Books a table.' : 'Books.',
      risk: agent === 'risk' ? (change.risk ?? 'write_low_risk') : 'write_low_risk',
      rollback: 'impossible',
      args: z.object({
        place:
          agent === 'arguments' && change.transform
            ? z.string().transform((place) => place.toUpperCase())
            : z.string(),
      }),
      async execute(_state, { place }) {
        appendFileSync(world, `${place}\n`)
        return { booked: place }
      },
    })
  const agents = AGENTS.map((name) =>
    defineAgent({
      name,
      instructions: (name === 'prompt' ? change.instructions : undefined) ?? `You are ${name}.`,
      model: (name === 'model' ? change.model : undefined) ?? models(name),
      tools: [tool(name)],
    }),
  )
  return createRegistry({ agents })
}

export const AGENTS = ['prompt', 'schema', 'risk', 'model', 'arguments', 'plain'] as const

/** A model that books once and thanks then, whatever it is asked. */
export function bookingModel(agent: string, modelId = 'script'): ScriptedModel {
  return scripted(
    ({ messages }) => {
      const last = messages.at(-1)
      if (last?.type === 'user' && last.text.startsWith('Book'))
        return calls(`${agent}_book`, { place: last.text.slice(5) })
      return says(last?.type === 'tool_result' ? 'Booked.' : 'Hello.')
    },
    { modelId },
  )
}

/** Records threads, each of the next agent. */
export async function recordThreads(
  world: string,
  count: number,
  {
    agents = AGENTS,
    change = {},
  }: { readonly agents?: readonly string[]; readonly change?: DeskChange } = {},
): Promise<Store> {
  const store = memoryStore()
  const registry = deskRegistry(world, (agent) => bookingModel(agent), change)
  const runtime = await createRuntime({ registry, store })
  await runtime.start()
  const kept: Store = new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  for (let index = 0; index < count; index++) {
    const { id } = await runtime.threads.create({ agent: agents[index % agents.length]! })
    await runtime.threads.run(id, 'Hi')
    await runtime.threads.run(id, `Book table ${index}`)
    for (const { threadId, interruptId } of await runtime.inbox.list({ threadId: id }))
      await runtime.inbox.approve({ threadId, interruptId, by: 'ada' })
    await runtime.threads.settled(id)
  }
  await runtime.idle()
  return kept
}

/** How often tools have run. */
export function effectsIn(world: string): number {
  return existsSync(world) ? readFileSync(world, 'utf8').split('\n').length - 1 : 0
}
