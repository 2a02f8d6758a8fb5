import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { agentTurn, fullThread, response, text, thread, userTurn } from '../../test/samples.ts'
import { addDecimals, sumUsage, threadStats } from './stats.ts'

describe('threadStats', () => {
  test('counts turns, messages, parts and the states of calls', () => {
    const stats = threadStats(fullThread())
    expect(stats.turns).toEqual({ user: 1, agent: 2 })
    expect(stats.messages).toEqual({ request: 2, response: 3, system: 2 })
    expect(stats.parts).toMatchObject({ text: 3, 'tool-call': 2, thinking: 1, file: 1 })
    expect(stats.toolCalls).toEqual({ completed: 1, retried: 1 })
  })

  test('sums usage as Pydantic AI does: inclusive, open set, exact cost', () => {
    const usage = {
      input_tokens: 100,
      cache_read_tokens: 40,
      output_tokens: 20,
      details: { reasoning_tokens: 12 },
      novel_tokens: 3,
      cost: '0.1',
      total_tokens: 999,
    }
    const said = (agent: string, model: string) => ({
      ...response(agent, 1, text('x')),
      usage,
      model_name: model,
    })
    const stats = threadStats(
      thread([
        agentTurn('ada', [said('ada', 'm1'), said('ada', 'm2'), said('ada', 'm1')]),
        agentTurn('bob', [response('bob', 9, text('free'))]),
      ]),
    )
    expect(stats.usage).toMatchObject({
      responses: 4,
      totalTokens: 360,
      cost: '0.3',
      usage: {
        input_tokens: 300,
        cache_read_tokens: 120,
        output_tokens: 60,
        details: { reasoning_tokens: 36 },
        novel_tokens: 9,
      },
    })
    expect(stats.byModel).toMatchObject({
      m1: { responses: 2, cost: '0.2' },
      m2: { cost: '0.1' },
      unknown: { responses: 1 },
    })
    expect(stats.byAgent['bob']).toEqual({
      responses: 1,
      usage: {},
      totalTokens: 0,
      cost: undefined,
    })
  })
})

describe('addDecimals', () => {
  test('is exact where floats are not', () => {
    expect(addDecimals('0.1', '0.2')).toBe('0.3')
    expect(addDecimals('0.10', '0.2')).toBe('0.30')
    expect(addDecimals('-1.5', '1.5')).toBe('0.0')
    expect(addDecimals('1e-7', '2')).toBe('2.0000001')
    expect(addDecimals('12345678901234567890.00000000000000000001', '1')).toBe(
      '12345678901234567891.00000000000000000001',
    )
    expect(addDecimals('-0.75', '0.5')).toBe('-0.25')
    expect(addDecimals('1E3', '.5')).toBe('1000.5')
  })

  test('agrees with integers at any scale', () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.bigInt(), fc.integer({ min: 0, max: 30 }), (a, b, scale) => {
        const exponent = `e-${scale}`
        const sum = addDecimals(`${a}${exponent}`, `${b}${exponent}`)
        expect(BigInt(sum.replace('.', ''))).toBe(a + b)
      }),
      { seed: 3, numRuns: 200 },
    )
  })

  test('refuses what is no number, without repeating much of it', () => {
    for (const text of ['', 'abc', '1.2.3', 'NaN', '1e99999']) {
      expect(() => addDecimals('1', text)).toThrow(
        expect.objectContaining({ code: 'INVALID_DECIMAL' }),
      )
    }
  })
})

describe('TP-37 sums of usage', () => {
  test('TP-37 count numbers only, add details and prices, and are absent when nothing was reported', () => {
    expect(sumUsage([])).toBeUndefined()
    expect(sumUsage([null, undefined, {}, 'x' as never])).toBeUndefined()
    expect(sumUsage([{ input_tokens: 0, output_tokens: 0 }])).toBeUndefined()
    expect(sumUsage([{ input_tokens: 0 }, { input_tokens: 2, note: 'x' } as never])).toEqual({
      input_tokens: 2,
    })
    expect(
      sumUsage([
        { input_tokens: 1, details: { a: 1, b: 'x', toString: 2 } as never },
        { details: { a: 2 } },
        { details: null as never },
      ]),
    ).toEqual({ input_tokens: 1, details: { a: 3, toString: 2 } })
    // Details alone were reported too, unless they are zero.
    expect(sumUsage([{ details: { a: 0, b: 2 } }, { details: { b: 1 } }])).toEqual({
      details: { a: 0, b: 3 },
    })
    expect(sumUsage([{ details: { a: 0 } }])).toBeUndefined()
    // A price alone was reported too; what is no price is left out.
    expect(sumUsage([{ cost: '0.10' }, { cost: 0.2 as never }])).toEqual({ cost: '0.30' })
    expect(sumUsage([{ cost: '0' }])).toEqual({ cost: '0' })
    for (const cost of ['free', '', ' 1', '1e9999', null, true, {}, '.5'])
      expect(sumUsage([{ cost: cost as never }])).toBeUndefined()
  })

  test('TP-37 statistics count the parts of user turns too, and pass over turns of a type that nobody knows', () => {
    const stats = threadStats(
      thread([
        userTurn('Hi'),
        { turn_type: 'pause' } as never,
        agentTurn('ada', [response('ada', 1, text('x'))]),
      ]),
    )
    expect(stats.parts).toEqual({ 'user-prompt': 1, text: 1 })
    expect(stats.turns).toEqual({ user: 1, agent: 1 })
    expect(stats.messages).toEqual({ request: 0, response: 1, system: 0 })
    expect(stats.usage).toEqual({ responses: 1, usage: {}, totalTokens: 0, cost: undefined })
    const priced = { ...response('ada', 1, text('x')), usage: { cost: null as never } }
    expect(threadStats(thread([agentTurn('ada', [priced])])).usage.cost).toBeUndefined()
  })

  test('TP-37 decimals of any form are read, up to an exponent of a thousand', () => {
    expect(addDecimals(' 1. ', '+2')).toBe('3')
    expect(addDecimals('.5', '5e-1')).toBe('1.0')
    expect(addDecimals('12e2', '0')).toBe('1200')
    expect(addDecimals('1.25e1', '0')).toBe('12.5')
    expect(addDecimals('-0.05', '0')).toBe('-0.05')
    expect(addDecimals('1e1000', '1')).toBe(`1${'0'.repeat(999)}1`)
    for (const amount of ['1e1001', '1e-1001', '.', 'x'.repeat(99)]) {
      expect(() => addDecimals(amount, '1')).toThrow(
        expect.objectContaining({
          code: 'INVALID_DECIMAL',
          message: expect.stringContaining(JSON.stringify(amount.slice(0, 40))) as string,
        }),
      )
    }
    expect(() => addDecimals('x'.repeat(41), '1')).toThrow(`"${'x'.repeat(40)}"`)
  })
})
