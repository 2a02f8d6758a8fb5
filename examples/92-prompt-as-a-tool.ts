/**
 * A prompt as a tool: one request to a model of its own, with its own schema, in the same thread. It is in the
 * log of requests and in the costs like every other.
 *
 * Prints:
 *
 *     the desk heard: {"mood":"bad","urgent":true}
 *     asked: desk, mood, desk
 *     spent: 0.0021 US dollars
 */

// #region program
import { createRuntime, defineAgent, defineModel, definePrompt } from '@skein/runtime'
import { calls, says, scripted, stops } from '@skein/ai/testing'
import { z } from 'zod'

const used = { usage: { inputTokens: 100, outputTokens: 10, totalTokens: 110 } }
const small = defineModel({
  name: 'small',
  model: scripted(() => [says('{"mood":"bad","urgent":true}'), stops(undefined, used)]),
  inputPrice: 1,
  outputPrice: 0,
})
const mood = definePrompt({
  name: 'mood',
  toolDescription: 'Tells the mood of a message.',
  prompt: 'Tell the mood of the message and whether it is urgent.',
  model: small,
  requiredSchema: z.object({ text: z.string() }),
  output: z.object({ mood: z.enum(['good', 'bad']), urgent: z.boolean() }),
})

const large = defineModel({
  name: 'large',
  model: scripted(({ messages }) => {
    const last = messages.at(-1)
    if (last?.type !== 'tool_result')
      return [calls('mood', { text: 'Where is my money?!' }), stops(undefined, used)]
    return [says(JSON.stringify(last.results[0]?.result)), stops(undefined, used)]
  }),
  inputPrice: 10,
  outputPrice: 0,
})
const desk = definePrompt({ name: 'desk', prompt: 'Help.', model: large, tools: [mood] })
const runtime = await createRuntime({
  agents: [defineAgent({ name: 'desk', sideA: { prompt: desk } })],
})
await runtime.start()
const { id } = await runtime.threads.create({ agent: 'desk' })
const { text } = await runtime.threads.run(id, 'Where is my money?!')
console.log(`the desk heard: ${text}`)
const logs = await runtime.threads.logs(id)
console.log(`asked: ${logs.map(({ prompt }) => prompt).join(', ')}`)
const { costUsd } = await runtime.threads.cost(id)
console.log(`spent: ${costUsd?.toFixed(4)} US dollars`)
await runtime.stop()
// #endregion program
