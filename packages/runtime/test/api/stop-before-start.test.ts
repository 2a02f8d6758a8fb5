import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, definePrompt } from '@skein/runtime'
import type { AgentDefinition, EmbeddedRuntime } from '@skein/runtime'
import { expect, test } from 'vitest'

test('a stop before the first step holds the message until a person goes on', async () => {
  const model = scripted(() => says('Hello.'))
  const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model })
  const runtime = await createRuntime({ agents: [defineAgent({ name: 'a', sideA: { prompt } })] })
  const { id } = await runtime.threads.create({ agent: 'a' })
  await runtime.threads.send(id, 'one')
  await runtime.threads.stop(id)
  await runtime.start()
  await runtime.idle()
  expect(model.requests).toHaveLength(0)
  expect((await runtime.threads.get(id)).lifecycle).toBe('stopped')
  await runtime.threads.run(id, 'two')
  expect(model.requests).toHaveLength(1)
  expect(model.requests[0]!.messages.map((one) => one.type === 'user' && one.text)).toEqual([
    'one',
    'two',
  ])
  await runtime.stop()
})

const pair = (model: ReturnType<typeof scripted>): AgentDefinition =>
  defineAgent({
    name: 'pair',
    type: 'dual_ai',
    maxSessionTurns: 4,
    exposeAsTool: true,
    toolDescription: 'Works.',
    sideA: { prompt: definePrompt({ name: 'a', prompt: 'A', model }) },
    sideB: { prompt: definePrompt({ name: 'b', prompt: 'B', model }) },
  })

/** A parent that has called the pair; the pair's own thread has not been worked on yet. */
async function called(child: ReturnType<typeof scripted>): Promise<{
  runtime: EmbeddedRuntime
  parent: string
  reference: string
}> {
  const boss = scripted((request) =>
    request.messages.some(({ type }) => type === 'tool_result')
      ? says('Over.')
      : calls('pair', { message: 'go' }),
  )
  const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model: boss, tools: [pair(child)] })
  const agents = [defineAgent({ name: 'boss', sideA: { prompt } })]
  const runtime = await createRuntime({ agents, maxConcurrent: 1 })
  const { id: parent } = await runtime.threads.create({ agent: 'boss', message: 'go' })
  await runtime.start()
  for await (const { event } of runtime.subscribe(parent))
    if (event.type === 'subagent_created') return { runtime, parent, reference: event.reference }
  throw new Error('no child was created')
}

test('a child that is stopped before it begins answers the call that waits for it', async () => {
  const { runtime, parent, reference } = await called(scripted(() => says('Working.')))
  await runtime.threads.stop(reference)
  const { outcome, text } = await runtime.threads.settled(parent)
  expect({ outcome, text }).toEqual({ outcome: 'completed', text: 'Over.' })
  await runtime.stop()
})

test('terminating a parent ends also the children that are done', async () => {
  const { runtime, parent, reference } = await called(scripted(() => says('Working.')))
  await runtime.threads.settled(parent)
  await runtime.threads.terminate(parent)
  expect((await runtime.threads.get(reference)).lifecycle).toBe('terminated')
  await runtime.stop()
})
