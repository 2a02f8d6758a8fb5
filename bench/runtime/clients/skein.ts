import { openaiCompatible } from '@skein/ai/openai-compatible'
import {
  createRuntime,
  defineAgent,
  defineModel,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  type Store,
} from '@skein/runtime'
import { z } from 'zod'
import { instructions, type Client, type ClientOptions } from './client.ts'

/** A runtime over the mock vendor, as our README shows it; the agent `helper` has one tool. */
export async function startRuntime(
  { baseUrl, folder, lookUp, store }: ClientOptions & { readonly store?: Store },
  modelId = 'turn',
): Promise<EmbeddedRuntime> {
  const tool = defineTool({
    name: 'look_up',
    description: 'Looks up.',
    args: z.object({ id: z.number(), query: z.string() }),
    risk: 'read_only',
    execute: (_, { id }) => lookUp(id),
  })
  const model = defineModel({
    name: 'mock',
    model: openaiCompatible({ name: 'mock', baseUrl })(modelId),
    config: { apiKey: 'sk-test' },
  })
  const prompt = definePrompt({ name: 'helper', prompt: instructions, model, tools: [tool] })
  const helper = defineAgent({ name: 'helper', sideA: { prompt } })
  const secretKey = new Uint8Array(32)
  const runtime = await createRuntime({ agents: [helper], folder, secretKey, store })
  await runtime.start()
  return runtime
}

export async function skeinClient(options: ClientOptions): Promise<Client> {
  const { threads } = await startRuntime(options)
  const ids = new Map<string, string>()
  return {
    async turn(thread, message) {
      const known = ids.get(thread)
      const id = known ?? (await threads.create({ agent: 'helper' })).id
      if (known === undefined) ids.set(thread, id)
      return (await threads.run(id, message)).text
    },
  }
}
