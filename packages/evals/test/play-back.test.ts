import { calls, says, scripted } from '@skein/ai/testing'
import { createRegistry, createRuntime, defineAgent, defineTool, memoryStore } from '@skein/runtime'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { playBack, readRecording } from '@skein/evals'

test('a thread with a tool plays back to the same events', async () => {
  const ran: string[] = []
  const add = defineTool({
    name: 'add',
    description: 'Adds.',
    risk: 'read_only',
    args: z.object({ a: z.number(), b: z.number() }),
    async execute(_state, { a, b }) {
      ran.push('add')
      return a + b
    },
  })
  const model = scripted([calls('add', { a: 1, b: 2 }), says('Three.'), says('Bye.')])
  const agent = defineAgent({ name: 'desk', instructions: 'You add.', model, tools: [add] })
  const store = memoryStore()
  const runtime = await createRuntime({ agents: [agent], store })
  await runtime.start()
  const thread = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.run(thread.id, 'Add 1 and 2')
  await runtime.threads.run(thread.id, 'Thanks')
  const recorded = await readRecording(store, thread.id)
  await runtime.stop()
  ran.length = 0
  const report = await playBack(recorded, { registry: createRegistry({ agents: [agent] }) })
  expect(report.difference).toBeUndefined()
  expect(report).toMatchObject({ isSame: true, events: recorded.events.length })
  expect(ran).toEqual([])
  expect(model.requests).toHaveLength(3)
})
