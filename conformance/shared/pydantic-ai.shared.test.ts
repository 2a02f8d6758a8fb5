import { expect, test } from 'vitest'
import { validateThread } from '@skein/threads'
import { fromPydanticAI, toPydanticAIText } from '@skein/threads/pydantic-ai'
import {
  expectRunsToJoin,
  fixed,
  thereAndBack,
} from '../../packages/threads/test/pydantic-trips.ts'
import { corpusTexts, generatedText } from '../support/shared-data.ts'

const generated = [
  'g01-two-runs-retries',
  'g02-deferred-pending',
  'g03-deferred-resumed',
  'g04-deferred-resumed-new-messages-only',
  'g05-output-tool',
  'g06-multimodal-tool-return',
]

test('TP-53 all histories of the corpus come back unchanged, with nothing lost', () => {
  const sources = corpusTexts()
  expect(sources).toHaveLength(1_274)
  const changed = sources.filter((source) => {
    const { value, configs } = fromPydanticAI(source, fixed)
    const { value: back, lost } = toPydanticAIText(value, { configs, policy: 'strict' })
    return back !== source || lost.length > 0 || thereAndBack(source) !== source
  })
  expect(changed).toEqual([])
})

test('TP-53 generated histories come back unchanged', () => {
  for (const name of generated) expect(thereAndBack(generatedText(name))).toBe(generatedText(name))
})

test('TP-53 histories imported run by run give the same text as the whole', () => {
  for (const source of corpusTexts()) expectRunsToJoin(source)
})

test('TP-11 generated histories: retries over two runs, a pause and its resume', () => {
  const shape = (name: string): string[] =>
    fromPydanticAI(generatedText(name), fixed).value.turns.map((turn) =>
      turn.turn_type === 'user' ? 'user' : `agent ${turn.messages.length}`,
    )
  expect(shape('g02-deferred-pending')).toEqual(['user', 'agent 2'])
  expect(shape('g03-deferred-resumed')).toEqual(['user', 'agent 2', 'agent 2'])
  expect(shape('g04-deferred-resumed-new-messages-only')).toEqual(['agent 2'])
  expect(shape('g01-two-runs-retries').filter((turn) => turn === 'user')).toHaveLength(2)
  expect(shape('g01-two-runs-retries')).toHaveLength(4)
})

test('TP-27 no history of the corpus keeps a system prompt inline', () => {
  for (const source of corpusTexts()) {
    const { issues } = validateThread(fromPydanticAI(source, fixed).value)
    expect(issues.filter(({ code }) => code === 'inline_system_prompt')).toEqual([])
  }
})
