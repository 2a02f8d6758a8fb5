import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentState } from '@skein/agents'
import { calls, says, scripted } from '@skein/ai/testing'
import { createAssistant } from '../src/assistant.ts'

test('the tool counts, and the model sees the result', async () => {
  const model = scripted([calls('count_words', { text: 'one two' }), says('Two.')])
  const { turn, state } = await createAssistant(model).generate('Count!', AgentState.initial())
  assert.equal(turn.response.text, 'Two.')
  const told = model.requests[1]?.messages.at(-1)
  assert.equal(told?.type === 'tool_result' && told.results[0]?.result, 2)
  assert.equal(state.messages.length, 4)
})

test('arguments that the schema refuses never reach the tool', async () => {
  const model = scripted([calls('count_words', { text: 7 }), says('Sorry.')])
  await createAssistant(model).generate('Count!', AgentState.initial())
  const told = model.requests[1]?.messages.at(-1)
  assert.equal(told?.type === 'tool_result' && told.results[0]?.isError, true)
})
