import { calls, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, definePrompt, defineTool, memoryStore } from '@skein/runtime'
import type { Dispatcher, Drain } from '@skein/runtime'
import { expect, test } from 'vitest'

/** Runs one drain when it is told to, and forgets it in the middle: the process died. */
function mortal(): {
  dispatcher: Dispatcher
  live(threadId: string, diesAfter: Promise<void>): Promise<unknown>
} {
  let drain: Drain | undefined
  const nothing = async (): Promise<void> => {}
  const dispatcher = {
    start: async (given: Drain) => void (drain = given),
    wake: () => {},
    interrupt: () => {},
    settled: nothing,
    idle: nothing,
    stop: nothing,
  }
  const live = (threadId: string, diesAfter: Promise<void>): Promise<unknown> =>
    Promise.race([drain!(threadId, new AbortController().signal), diesAfter])
  return { dispatcher, live }
}

test('a call that ends every process it runs in is given up, with the reason in the log', async () => {
  const store = memoryStore()
  let runs = 0
  let die: () => void = () => {}
  const crash = defineTool({
    name: 'crash',
    description: 'Ends the process.',
    risk: 'read_only',
    execute: () => {
      runs++
      die()
      return new Promise(() => {})
    },
  })
  const model = scripted(() => calls('crash', {}))
  const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model, tools: [crash] })
  const agents = [defineAgent({ name: 'a', sideA: { prompt } })]
  const first = await createRuntime({ agents, store })
  const { id } = await first.threads.create({ agent: 'a', message: 'go' })
  for (let life = 0; life < 20; life++) {
    const { dispatcher, live } = mortal()
    const runtime = await createRuntime({ agents, store, dispatcher: () => dispatcher })
    await runtime.start()
    await live(id, new Promise((resolve) => (die = resolve)))
  }
  const { lifecycle, wakeAt } = await first.threads.get(id)
  expect({ lifecycle, wakeAt }).toEqual({ lifecycle: 'failed', wakeAt: null })
  expect(runs).toBeLessThan(8)
  const events = await first.threads.events(id)
  expect(
    events.some(({ event }) => event.type === 'error_raised' && event.code === 'DRAIN_FAILED'),
  ).toBe(true)
})
