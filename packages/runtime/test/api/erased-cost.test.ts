import { beforeEach, expect, test } from 'vitest'
import type { RuntimeEvent } from '../../src/contract/event.ts'
import { definitions } from './definitions.ts'
import { coded, createHarness, START, type Harness } from './harness.ts'

const at = new Date(START).toISOString()
let harness: Harness
let id: string

const asked = (logId: string, model: string): RuntimeEvent => ({
  type: 'model_requested',
  at,
  logId,
  stepId: 's',
  turnId: 't',
  attempt: 1,
  side: 'a',
  prompt: 'main',
  provider: 'p',
  model,
  frame: 'hash of a secret prompt',
  adds: ['m1', { id: 'm2', message: { text: 'a secret line' } }],
})

const usage = { input_tokens: 10, output_tokens: 1 }
const answered = (logId: string, costUsd?: number): RuntimeEvent => ({
  type: 'model_answered',
  at,
  logId,
  durationMs: 5,
  usage,
  costUsd,
})

beforeEach(async () => {
  harness = await createHarness({ definitions })
  id = (await harness.threads.create({ agent: 'support' })).id
  await harness.append(
    id,
    asked('l1', 'm'),
    answered('l1', 0.5),
    asked('l2', 'n'),
    answered('l2', 0.25),
    // The summary of `l2` is counted once; what has no request is counted, too.
    { type: 'usage_recorded', at, logId: 'l2', usage, costUsd: 0.25 },
    { type: 'usage_recorded', at, usage, costUsd: 1 },
    asked('l3', 'n'),
  )
})

test('an erased thread has the cost that it had, by model, and nothing of its requests', async () => {
  const before = await harness.threads.cost(id)
  expect(before).toMatchObject({
    tokens: 33,
    costUsd: 1.75,
    byModel: { 'p/m': { calls: 1, costUsd: 0.5 }, 'p/n': { calls: 2, costUsd: 0.25 } },
  })
  await harness.threads.erase(id)
  expect(await harness.threads.cost(id)).toEqual(before)
  expect(JSON.stringify(await harness.threads.events(id))).not.toMatch(/secret|m1/)
  await expect(harness.threads.log(id, 'l1')).rejects.toEqual(coded('LOG_NOT_FOUND'))
  // The frames of its requests are gone, so a copy needs none.
  const copy = await harness.threads.import(await harness.threads.export(id))
  expect(await harness.threads.cost(copy.id)).toMatchObject({ tokens: 33, costUsd: 1.75 })
})

test('a thread that was erased without its requests has the cost of their answers', async () => {
  const log = (await harness.threads.events(id)).map(({ event }) => event)
  await harness.store.erase(
    id,
    log.filter(({ type }) => type !== 'model_requested'),
  )
  harness.folds.forget(id)
  expect(await harness.threads.cost(id)).toEqual({
    threadId: id,
    tokens: 33,
    costUsd: 1.75,
    byModel: {},
    byThread: { [id]: { agent: 'support', tokens: 33, costUsd: 1.75 } },
  })
})
