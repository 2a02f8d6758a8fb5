import { fails, says, scripted, stops } from '@skein/ai/testing'
import { deployCheck, deployText } from '@skein/evals'
import { createRegistry, createRuntime, defineAgent, memoryStore } from '@skein/runtime'
import { expect, test } from 'vitest'

/** A model whose answers cost one dollar each. */
const dear = () =>
  scripted(() => [
    says('Hello!'),
    stops('end_turn', { usage: { inputTokens: 0, outputTokens: 1_000_000 } }),
  ])
const prices = () => ({ input: 1, output: 1 })

/** Two threads of two requests each. */
async function greeted() {
  const agent = defineAgent({ name: 'greeter', instructions: 'You greet.', model: dear() })
  const store = memoryStore()
  const runtime = await createRuntime({ agents: [agent], store })
  await runtime.start()
  for (let index = 0; index < 2; index++) {
    const { id } = await runtime.threads.create({ agent: 'greeter' })
    await runtime.threads.run(id, `Hi ${index}`)
    await runtime.threads.run(id, 'Hi again')
  }
  await runtime.idle()
  return store
}

const next = (model: ReturnType<typeof scripted>) =>
  defineAgent({ name: 'greeter', instructions: 'You greet warmly.', model })

test('a limit in dollars counts each answer by the price of its model, before the next request', async () => {
  const store = await greeted()
  const model = dear()
  const registry = createRegistry({ agents: [next(model)], prices })
  const report = await deployCheck({ store, registry, maxCostUsd: 1, concurrency: 1 })
  expect(model.requests).toHaveLength(1)
  expect(report).toMatchObject({ requests: { sent: 1 }, spent: { costUsd: 1 } })
  // The first difference of both is known, although neither has come to its end.
  expect(report).toMatchObject({ cut: 2, unchecked: 0 })
  expect(report.groups).toMatchObject([{ kind: 'instructions', count: 2 }])
  expect(deployText(report)).toContain('2 differ, 0 not checked. 2 ended early')
})

test('a limit in dollars is refused if a model has no price', async () => {
  const store = await greeted()
  const registry = createRegistry({ agents: [next(dear())] })
  await expect(deployCheck({ store, registry, maxCostUsd: 1 })).rejects.toMatchObject({
    code: 'INPUT_INVALID',
    message: expect.stringContaining('scripted/script has no price'),
  })
})

test('a request without an answer counts as sent', async () => {
  const store = await greeted()
  const model = scripted(() => fails({ code: 'INVALID_REQUEST' }))
  const registry = createRegistry({ agents: [next(model)], prices })
  const report = await deployCheck({ store, registry, concurrency: 1 })
  expect(report.requests.sent).toBe(model.requests.length)
})
