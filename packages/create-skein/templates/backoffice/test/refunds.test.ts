import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createRuntime, defineAgent, definePrompt, type EmbeddedRuntime } from '@skein/runtime'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import agent from '../agents/refunds.ts'
import prompt from '../prompts/refunds.ts'
import { findOrder, setStatus } from '../shop.ts'
import undoRefund from '../tools/undo_refund.ts'

process.env.SHOP_DB = ':memory:'
beforeEach(() => setStatus('O-7', 'delivered'))

/** The desk with a model that says exactly this, in a runtime that keeps everything in memory. */
async function withDesk(
  steps: readonly ScriptStep[],
  body: (runtime: EmbeddedRuntime, id: string) => Promise<void>,
): Promise<void> {
  const side = { ...agent.sideA, prompt: definePrompt({ ...prompt, model: scripted(steps) }) }
  const desk = defineAgent({ ...agent, sideA: side })
  const runtime = await createRuntime({ agents: [desk], tools: [undoRefund] })
  await runtime.start()
  try {
    const { id } = await runtime.threads.create({ agent: 'refunds' })
    await body(runtime, id)
  } finally {
    await runtime.stop()
  }
}

const refundO7 = [
  calls('look_up_order', { order: 'O-7' }),
  calls('refund', { order: 'O-7', amount: 25 }),
  says('Done.'),
]

test('nothing is paid before a person approves', async () => {
  await withDesk(refundO7, async (runtime, id) => {
    const { waiting } = await runtime.threads.run(id, 'refund O-7')
    const [item] = waiting
    assert.ok(item, 'the refund waits')
    assert.equal(findOrder('O-7').status, 'delivered')

    const { threadId, interruptId } = item
    await runtime.inbox.approve({ threadId, interruptId, by: 'pat' })
    const { outcome } = await runtime.threads.settled(id)
    assert.equal(outcome, 'completed')
    assert.equal(findOrder('O-7').status, 'refunded')
  })
})

test('a denied refund is not paid', async () => {
  await withDesk(refundO7, async (runtime, id) => {
    const { waiting } = await runtime.threads.run(id, 'refund O-7')
    for (const { threadId, interruptId } of waiting)
      await runtime.inbox.deny({ threadId, interruptId, by: 'pat', reason: 'Too late.' })
    await runtime.threads.settled(id)
    assert.equal(findOrder('O-7').status, 'delivered')
  })
})

test('an answer without evidence is withheld', async () => {
  await withDesk([says('Your order is fine.')], async (runtime, id) => {
    const { outcome, text } = await runtime.threads.run(id, 'How is O-7?')
    assert.notEqual(outcome, 'completed')
    assert.match(text, /EVIDENCE_MISSING/)
  })
})
