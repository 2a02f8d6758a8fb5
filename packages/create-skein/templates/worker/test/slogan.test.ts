import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime, defineAgent, definePrompt } from '@skein/runtime'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import slogan from '../agents/slogan.ts'
import reviewerPrompt from '../prompts/reviewer.ts'
import writerPrompt from '../prompts/writer.ts'

/** Runs the pair with models that say exactly this. */
async function run(writer: readonly ScriptStep[], reviewer: readonly ScriptStep[]) {
  const a = definePrompt({ ...writerPrompt, model: scripted(writer) })
  const b = definePrompt({ ...reviewerPrompt, model: scripted(reviewer) })
  const runtime = await createRuntime({
    agents: [
      defineAgent({
        ...slogan,
        sideA: { ...slogan.sideA, prompt: a },
        sideB: { ...slogan.sideB, prompt: b },
      }),
    ],
  })
  await runtime.start()
  try {
    const { id } = await runtime.threads.create({ agent: 'slogan' })
    return await runtime.threads.run(id, 'Please write a slogan for the oak loom.')
  } finally {
    await runtime.stop()
  }
}

test('the session ends with what the reviewer accepts', async () => {
  const { outcome, text } = await run(
    [says('Oak loom.'), says('The oak loom, made with care')],
    [says('Say more.'), calls('accept', { slogan: 'The oak loom, made with care' })],
  )
  assert.equal(outcome, 'completed')
  assert.equal(text, 'The oak loom, made with care')
})

test('a slogan of nine words is not accepted, whatever the reviewer says', async () => {
  const long = 'one two three four five six seven eight nine'
  const { outcome, text } = await run(
    [says(long), says('Short.')],
    [calls('accept', { slogan: long }), says('Shorter.'), calls('accept', { slogan: 'Short.' })],
  )
  assert.equal(outcome, 'completed')
  assert.equal(text, 'Short.')
})
