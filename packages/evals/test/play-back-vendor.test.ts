import anthropic from '@skein/ai/anthropic'
import google from '@skein/ai/google'
import openai from '@skein/ai/openai'
import { calls, says, vendorServer } from '@skein/ai/testing'
import {
  createRegistry,
  createRuntime,
  defineAgent,
  defineModel,
  definePrompt,
  defineTool,
  memoryStore,
} from '@skein/runtime'
import { expect, test } from 'vitest'
import { playBack, readRecording, replay } from '@skein/evals'

const models = [
  ['openai', openai('gpt-5')],
  ['anthropic', anthropic('claude-sonnet-4-5')],
  ['google', google('gemini-3.5-flash', { api: 'interactions' })],
] as const

test.each(models)(
  'the settings of a request to %s are those of the recording',
  async (_, model) => {
    const vendor = vendorServer([calls('look', {}), says('Done.')])
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      risk: 'read_only',
      execute: async () => 'seen',
    })
    const defined = defineModel({
      name: 'vendor',
      model,
      config: { apiKey: 'k', fetch: vendor.fetch },
    })
    const prompt = definePrompt({
      name: 'main',
      prompt: 'You look.',
      model: defined,
      tools: [look],
      toolChoice: 'required',
      reasoning: { effort: 'low' },
    })
    const agent = defineAgent({ name: 'desk', sideA: { prompt } })
    const store = memoryStore()
    const runtime = await createRuntime({ agents: [agent], store })
    await runtime.start()
    const { id } = await runtime.threads.create({ agent: 'desk' })
    await runtime.threads.run(id, 'Look')
    const recorded = await readRecording(store, id)
    await runtime.stop()
    expect(recorded.requests[0]!.content.params).not.toEqual({})
    const registry = createRegistry({ agents: [agent] })
    expect((await playBack(recorded, { registry })).difference).toBeUndefined()
    expect(await replay(recorded, { registry })).toMatchObject({
      first: undefined,
      requests: { sent: 0 },
    })
  },
)
