import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime, defineAgent, definePrompt, type EmbeddedRuntime } from '@skein/runtime'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import assistant from '../prompts/assistant.ts'

/** The assistant with a model that says exactly this, in a runtime that keeps everything in memory. */
async function start(steps: readonly ScriptStep[]): Promise<EmbeddedRuntime> {
  const prompt = definePrompt({ ...assistant, model: scripted(steps) })
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'assistant', sideA: { prompt } })],
  })
  await runtime.start()
  return runtime
}

test('a note is deleted when a person has approved it', async () => {
  const runtime = await start([
    calls('add_note', { text: 'milk' }),
    says('Noted.'),
    calls('delete_note', { text: 'milk' }),
    says('It is gone.'),
  ])
  try {
    const { id } = await runtime.threads.create({ agent: 'assistant' })
    await runtime.threads.run(id, 'note milk')
    const { waiting } = await runtime.threads.run(id, 'delete milk')
    const [item] = waiting
    assert.ok(item, 'the call waits')
    assert.deepEqual(await notes(runtime, id), ['milk'])

    const { threadId, interruptId } = item
    await runtime.inbox.approve({ threadId, interruptId, by: 'pat' })
    const { text } = await runtime.threads.settled(id)
    assert.equal(text, 'It is gone.')
    assert.deepEqual(await notes(runtime, id), [])
  } finally {
    await runtime.stop()
  }
})

test('a denied call has no effect', async () => {
  const runtime = await start([
    calls('add_note', { text: 'milk' }),
    says('Noted.'),
    calls('delete_note', { text: 'milk' }),
    says('It stays.'),
  ])
  try {
    const { id } = await runtime.threads.create({ agent: 'assistant' })
    await runtime.threads.run(id, 'note milk')
    const { waiting } = await runtime.threads.run(id, 'delete milk')
    for (const { threadId, interruptId } of waiting)
      await runtime.inbox.deny({ threadId, interruptId, by: 'pat', reason: 'I need it.' })
    await runtime.threads.settled(id)
    assert.deepEqual(await notes(runtime, id), ['milk'])
  } finally {
    await runtime.stop()
  }
})

function notes(runtime: EmbeddedRuntime, id: string): Promise<unknown> {
  return runtime.withState(id, (state) => state.getValue('notes'))
}
