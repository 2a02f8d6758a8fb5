import { afterEach, expect, test } from 'vitest'
import type { LLMRequest } from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'
import { createRuntime, type EmbeddedRuntime } from '../../src/index.ts'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { definePrompt } from '../../src/definitions/define.ts'

const opened: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop({ graceMs: 0 })
})

/** A runtime whose ids can be made to begin again, so that a removed thread can come back under its id. */
async function start(): Promise<{
  runtime: EmbeddedRuntime
  beginAgain: () => void
  seen: number[]
}> {
  let count = 0
  const seen: number[] = []
  const model = scripted(({ messages }: LLMRequest) => {
    seen.push(messages.length)
    return says(`Heard ${messages.length}.`)
  })
  const prompt = definePrompt({ name: 'echo', prompt: 'Echo.', model })
  const agent = defineAgent({ name: 'echo', sideA: { prompt } })
  const runtime = await createRuntime({ agents: [agent], ids: () => `id-${count++}` })
  opened.push(runtime)
  await runtime.start()
  return { runtime, beginAgain: () => void (count = 0), seen }
}

const texts = async ({ threads }: EmbeddedRuntime, id: string): Promise<string[]> =>
  (await threads.messages(id)).map(({ message }) => message.text)

test('a thread that was removed and made again under the same id is worked on from its own log', async () => {
  const { runtime, beginAgain, seen } = await start()
  const { threads } = runtime
  const { id } = await threads.create({ agent: 'echo' })
  await threads.run(id, 'one')
  await threads.run(id, 'two')
  await threads.remove(id)
  beginAgain()
  const again = await threads.create({ agent: 'echo' })
  expect(again.id).toBe(id)
  const { text } = await threads.run(id, 'three', { signal: AbortSignal.timeout(5_000) })
  expect(text).toBe('Heard 1.')
  expect(seen).toEqual([1, 3, 1])
  expect(await texts(runtime, id)).toEqual(['three', 'Heard 1.'])
})

test('a log that another process replaced is read from its beginning', async () => {
  const { runtime } = await start()
  const { threads, store } = runtime
  const { id } = await threads.create({ agent: 'echo' })
  await threads.run(id, 'one')
  const other = await threads.create({ agent: 'echo' })
  await threads.run(other.id, 'of the other')
  expect(await texts(runtime, id)).toEqual(['one', 'Heard 1.'])
  // As a second node does it: only the store knows. The new log is longer than the old one.
  const history = (await store.events(other.id)).map(({ event }) => event)
  const head = (await store.head(id))!
  await store.remove(id)
  const change = { id, create: head, append: [...history, ...history.slice(-1)] }
  await store.commit({ point: 'test', threads: [change] })
  expect(await texts(runtime, id)).toEqual(['of the other', 'Heard 1.'])
  expect((await threads.run(id, 'two')).text).toBe('Heard 3.')
})

test('a log that is erased while it is being read is not mixed with what replaces it', async () => {
  const { runtime } = await start()
  const { threads, store } = runtime
  const { id } = await threads.create({ agent: 'echo' })
  for (let i = 0; i < 3; i++) await threads.run(id, `${i}`)
  await threads.erase(id)
  expect(await texts(runtime, id)).toEqual(['', '', '', '', '', ''])
  // Erased again by another node, with nothing left.
  const [created] = await store.events(id)
  await store.erase(id, [created!.event])
  expect(await texts(runtime, id)).toEqual([])
})
