/** A history that is imported in pieces, as a server does after each run or in the middle of one. */
import { expect, test } from 'vitest'
import { pydanticPart, pydanticRequest, pydanticResponse } from '../../../test/pydantic-samples.ts'
import { fixed } from '../../../test/pydantic-trips.ts'
import type { Thread } from '../../index.ts'
import { createConfigStore, fromPydanticAI } from './index.ts'

const run = (run_id: string, rest: object = {}) => ({ run_id, ...rest })
const usage = (input_tokens: number) => ({
  usage: { input_tokens, output_tokens: 1, details: { a: input_tokens }, cost: '0.10' },
})

const history = [
  pydanticRequest([pydanticPart.system('s'), pydanticPart.prompt('one')], run('r1')),
  pydanticResponse([pydanticPart.call('a', {})], run('r1', usage(1))),
  pydanticRequest([pydanticPart.answer('a', 'gone')], run('r1')),
  pydanticResponse([pydanticPart.call('b', {})], run('r1', usage(2))),
  pydanticRequest([pydanticPart.answer('b', 'gone')], run('r1', { timestamp: null })),
  pydanticResponse([pydanticPart.text('done')], run('r1', { timestamp: null, ...usage(4) })),
  pydanticRequest([pydanticPart.prompt('two')], run('r2')),
  pydanticResponse([pydanticPart.text('yes')], run('r2', { usage: null })),
]

test('TP-37 turns, their times and their usage are the same however a history is cut', () => {
  const whole = fromPydanticAI(history, fixed).value
  expect(whole.turns.map((turn) => 'total_usage' in turn && turn.total_usage)).toEqual([
    false,
    { input_tokens: 7, output_tokens: 3, details: { a: 7 }, cost: '0.30' },
    false,
    false,
  ])
  const pieces = (...cuts: readonly number[]): Thread => {
    const configs = createConfigStore()
    let thread: Thread | undefined
    for (const [index, start] of cuts.entries()) {
      const piece = history.slice(start, cuts[index + 1])
      thread = fromPydanticAI(piece, { ...fixed, configs, thread }).value
    }
    return thread!
  }
  for (let cut = 1; cut < history.length; cut++) {
    expect(pieces(0, cut).turns).toEqual(whole.turns)
    expect(pieces(0, cut).updated_at).toBe(whole.updated_at)
  }
  expect(pieces(...history.keys()).turns).toEqual(whole.turns)
})
