import { calls, fails, says, scripted } from '@skein/ai/testing'
import { readRecording, replay } from '@skein/evals'
import { createRegistry, createRuntime, defineAgent, defineTool, memoryStore } from '@skein/runtime'
import { expect, test } from 'vitest'
import { z } from 'zod'

type Script = Parameters<typeof scripted>[0]

/** An agent whose account pays 50 with each look at it. */
function bank() {
  let money = 150
  const balance = defineTool({
    name: 'balance',
    description: 'The balance.',
    risk: 'read_only',
    execute: () => (money -= 50),
  })
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    risk: 'write_high_risk',
    rollback: 'impossible',
    args: z.object({ amount: z.number() }),
    execute: () => 'paid',
  })
  return (script: Script, instructions = 'You count.') =>
    defineAgent({ name: 'bank', instructions, model: scripted(script), tools: [balance, pay] })
}

async function recorded(script: Script, messages: readonly string[]) {
  const agent = bank()
  const store = memoryStore()
  const runtime = await createRuntime({ agents: [agent(script)], store })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'bank' })
  for (const message of messages) await runtime.threads.run(id, message)
  for (const { threadId, interruptId } of await runtime.inbox.list({ threadId: id }))
    await runtime.inbox.approve({ threadId, interruptId, by: 'ada' })
  await runtime.threads.settled(id)
  const thread = await readRecording(store, id)
  await runtime.stop()
  const next = (other: Script) => createRegistry({ agents: [agent(other, 'You count well.')] })
  return { thread, next }
}

test('a call after the difference has the result of the next equal call', async () => {
  const { thread, next } = await recorded(
    [calls('balance'), says('100.'), calls('balance'), says('50.')],
    ['How much?', 'And now?'],
  )
  const report = await replay(thread, {
    registry: next([calls('balance'), says('Fifty.')]),
    from: 3,
  })
  expect(report).toMatchObject({ first: { step: 3 }, end: { type: 'done' } })
  expect(report.facts.calls.map(({ result }) => result)).toEqual([100, 50])
})

test('an approval answers one call, and the next equal one waits', async () => {
  const pay = calls('pay', { amount: 5 })
  const { thread, next } = await recorded([pay, says('Paid.')], ['Pay 5'])
  const once = await replay(thread, { registry: next([pay, says('Paid!')]) })
  expect(once.end).toEqual({ type: 'done' })
  const twice = await replay(thread, { registry: next([pay, pay, says('Paid twice!')]) })
  expect(twice.end).toEqual({ type: 'waits_for_approval', toolName: 'pay' })
})

test('a request that is refused for a moment is sent again', async () => {
  const { thread, next } = await recorded([says('Hello.')], ['Hi'])
  const report = await replay(thread, {
    registry: next([fails({ code: 'RATE_LIMITED' }), says('Hello!')]),
    runtime: { limits: { modelBackoffMs: 1 } },
  })
  expect(report).toMatchObject({ end: { type: 'done' }, requests: { sent: 2 } })
  expect(report.facts.text).toBe('Hello!')
})

test('a request that is refused for long ends the replay as failed', async () => {
  const { thread, next } = await recorded([says('Hello.')], ['Hi'])
  const report = await replay(thread, {
    registry: next([
      fails({ code: 'RATE_LIMITED', message: 'Not today.', retryAfterMs: 3_600_000 }),
      says('Hello!'),
    ]),
  })
  expect(report).toMatchObject({ end: { type: 'failed', message: 'Not today.' } })
})
