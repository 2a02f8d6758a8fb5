import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, defineModel, definePrompt, defineTool } from '@skein/runtime'
import type { EmbeddedRuntime, PromptTool, SendMessage, ThreadState } from '@skein/runtime'
import { afterEach, expect, test } from 'vitest'

const running: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of running.splice(0)) await runtime.stop()
})

function look(execute: (state: ThreadState) => unknown) {
  const description = 'Looks.'
  return defineTool({ name: 'look', description, risk: 'read_only', execute })
}

/** A child that ends its session at once. */
const worker = (() => {
  const done = defineTool({
    name: 'done',
    description: 'Ends.',
    risk: 'read_only',
    execute: () => 'Worked.',
  })
  const model = scripted(() => calls('done'))
  const prompt = definePrompt({ name: 'work', prompt: 'Work.', model, tools: [done] })
  return defineAgent({
    name: 'worker',
    type: 'dual_ai',
    maxSessionTurns: 4,
    exposeAsTool: true,
    toolDescription: 'Works.',
    sideA: { prompt, sessionStop: done },
    sideB: { prompt: definePrompt({ name: 'idle', prompt: 'Wait.', model }) },
  })
})()

/** Sends messages to an agent with one tool, one after the other; returns the ids of the models that were asked. */
async function askedModels(tool: PromptTool, ...messages: readonly SendMessage[]) {
  const script: Parameters<typeof scripted>[0] = ({ messages: seen, tools }) =>
    seen.some(({ type }) => type === 'tool_result') ? says('Done.') : calls(tools[0]!.name)
  const [usual, other] = ['usual', 'other'].map((modelId) =>
    defineModel({ name: modelId, model: scripted(script, { modelId }) }),
  )
  const prompt = definePrompt({ name: 'desk', prompt: 'Help.', model: usual!, tools: [tool] })
  const others = definePrompt({ name: 'others', prompt: 'Help.', model: other! })
  const agents = [
    defineAgent({ name: 'desk', sideA: { prompt } }),
    defineAgent({ name: 'others', sideA: { prompt: others } }),
  ]
  const runtime = await createRuntime({ agents })
  running.push(runtime)
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'desk' })
  for (const message of messages) {
    await runtime.threads.send(id, message)
    await runtime.idle()
  }
  const sent = await runtime.threads.messages(id, { includeSilent: true })
  const texts = sent.map(({ message }) => message.text)
  return { asked: (await runtime.threads.logs(id)).map(({ model }) => model), texts }
}

const chosen = { text: 'Go', model: 'other' }
const call = { text: 'Go', call: { toolName: 'look', arguments: {} } }

test('a chosen model answers until the next message, also after a report of a child', async () => {
  const { asked, texts } = await askedModels({ name: worker, blocking: false }, chosen, {
    text: 'And now?',
  })
  expect(texts.join()).toContain('Worked.')
  expect([new Set(asked.slice(0, -1)), asked.at(-1)]).toEqual([new Set(['other']), 'usual'])
})

test('a chosen model goes on after a tool put a message into the conversation', async () => {
  const tool = look((state) => state.injectMessage({ content: 'A result.' }))
  const { asked, texts } = await askedModels(tool, chosen)
  expect(texts).toContain('A result.')
  expect(asked).toEqual(['other', 'other'])
})

test('a chosen call asks no model, though its tool put a message into the conversation', async () => {
  const tool = look((state) => state.injectMessage({ content: 'A result.' }))
  expect(await askedModels(tool, call)).toMatchObject({ asked: [] })
})

test('a message that a tool queues is the next message', async () => {
  const tool = look((state) => state.queueMessage({ content: 'And now?' }))
  expect(await askedModels(tool, call)).toMatchObject({ asked: ['usual'] })
})
