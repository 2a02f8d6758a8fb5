import { expect, test } from 'vitest'
import { says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, definePrompt, memoryStore } from '@skein/runtime'

/** A link to no other node: only the regular searches of the store tell what happens elsewhere. */
const link = { send: () => {}, start: async () => {}, stop: async () => {} }

test('who terminates a thread again does not wait for the lease of a node that died', async () => {
  const store = memoryStore()
  const prompt = definePrompt({ name: 'p', prompt: 'P.', model: scripted(() => says('Hi.')) })
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'a', sideA: { prompt } })],
    store,
    nodes: { link, secret: 'a secret of nodes for this test alone' },
  })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a', message: 'go' })
  await runtime.threads.settled(id)
  await runtime.threads.terminate(id)
  // Another node claimed the thread although nothing was left to do, and died before it gave the lease back.
  await store.claim(id, { owner: 'another node', leaseMs: 100 })
  await runtime.threads.terminate(id)
  expect((await store.head(id))?.lease).toBeNull()
  await runtime.stop()
}, 15_000)
