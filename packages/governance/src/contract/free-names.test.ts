import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Action, rules } from '../index.ts'
import { action } from '../../test/approval-setup.ts'
import { findFreeNames } from './free-names.ts'

declare const limit: number, list: string[], helper: (value: unknown) => boolean

/** Functions as a program writes them, with the names that each takes from outside. */
const functions: readonly (readonly [string, (...args: never) => unknown])[] = [
  ['', ({ tool, args }: Action) => tool === 'note' && (args as { text: string }).text === 'limit'],
  ['', ({ risk: tier }: Action) => tier === 'read_only' || !/limit[/"]+/.test(tier)],
  ['', ({ args }: Action) => JSON.stringify(args).includes(`limit ${String(args)} limit`)],
  ['', (a: Action) => Object.values(a).some((x) => x === 1 || [x].map((y, z) => y ?? z))],
  ['limit', ({ args }: Action) => (args as { n: number }).n > limit],
  ['limit', (a: Action, { n = limit }: { n?: number }) => a.depth > n],
  ['list', ({ tool }: Action) => list.includes(tool)],
  ['helper', (a: Action) => (a.depth > 1 ? helper(a) : a.depth)],
  ['limit', (a: Action) => `x${a.depth > limit ? 'a' : 'b'}`],
  ['limit', (a: Action) => ({ a, b: limit })],
  ['limit', (a: Action) => (a.depth ? limit : 1)],
  ['limit', (a: Action) => [...(a.tool === '' ? [limit] : []), a]],
  ['limit,list', (a: Action) => a.depth / limit / list.length],
  ['process', () => process.env['LIMIT']],
  [
    'helper',
    function named(this: void, { tool }: Action) {
      const { length, at: [first, second = helper] = [] as never[] } = tool as never as {
        length: number
        at: never[]
      }
      for (const one of tool) if (one === 'a') return first
      try {
        return [named, second, length]
      } catch (error) {
        return error
      }
    },
  ],
]

describe('the names that a function takes from outside', () => {
  test.each(functions)('%s: %s', (names, fn) => {
    expect(findFreeNames(fn)?.toSorted().join()).toBe(names)
  })

  test('a function that hides its source has no answer', () => {
    expect(findFreeNames(Math.max)).toBeUndefined()
    expect(findFreeNames(((a: Action) => a.depth > limit).bind(null))).toBeUndefined()
  })

  test('whatever stands around it, a name from outside is found', () => {
    const wrap = fc.constantFrom<(inner: string) => string>(
      (inner) => `(${inner})`,
      (inner) => `[${inner}]`,
      (inner) => `{ a: ${inner}, b: 1 }.a`,
      (inner) => `a.x ? ${inner} : 2`,
      (inner) => `a.x ? 1 : ${inner}`,
      (inner) => `\`text \${${inner}} text\``,
      (inner) => `[1].map((x) => x + (${inner}))`,
      (inner) => `a / (${inner}) / 2`,
      (inner) => `/[/]outer/.test(${inner})`,
      (inner) => `'outer' + "it's" + (${inner})`,
      (inner) => `(() => { const y = ${inner}; return y /* outer */ })()`,
    )
    fc.assert(
      fc.property(fc.array(wrap, { maxLength: 5 }), fc.boolean(), (wraps, isFree) => {
        const inner = wraps.reduce((text, next) => next(text), isFree ? 'outer' : 'a.outer')
        const fn = new Function(`return (a) => (${inner})`)() as (a: unknown) => unknown
        expect(findFreeNames(fn)).toEqual(isFree ? ['outer'] : [])
      }),
    )
  })
})

describe('rules', () => {
  test('a rule that uses a name from outside is refused, with a hint', () => {
    expect(() =>
      rules([{ when: ({ depth }) => depth > limit, effect: 'review' }], { id: 'limits' }),
    ).toThrow(
      expect.objectContaining({
        code: 'GOVERNANCE_DEFINITION_INVALID',
        message: expect.stringMatching(/"limits".*rule 0 uses limit from outside/) as string,
        hint: expect.stringContaining('values') as string,
      }) as Error,
    )
    expect(() =>
      rules([{ when: ({ depth }) => depth > limit, effect: 'review' }], { version: '1' }),
    ).not.toThrow()
  })

  test('UAICP-23 a rule that hides its source is refused, and each wrong rule is named', () => {
    const hidden = ((a: Action) => a.depth > 1).bind(null)
    const outer = ({ depth }: Action): boolean => depth > limit
    const made = () =>
      rules([
        { when: () => true, effect: 'allow' },
        { when: hidden, effect: 'deny' },
        { when: outer, effect: 'deny' },
      ])
    expect(made).toThrow('rule 1 hides its source; rule 2 uses limit from outside')
  })

  test('UAICP-23 a list of rules that is changed later does not change the policy under its hash', async () => {
    const first: { when: (action: Action) => boolean; effect: 'deny' | 'allow' } = {
      when: () => true,
      effect: 'deny',
    }
    const list = [first]
    const { decide } = rules(list)
    first.effect = 'allow'
    list.pop()
    expect(await decide(action({}))).toMatchObject({ effect: 'deny' })
  })

  test('values are passed in and are part of the hash', async () => {
    const made = (most: number) =>
      rules([{ when: ({ depth }, values) => depth > values.most, effect: 'deny' }], {
        values: { most },
      })
    expect(await made(0).decide(action({ depth: 1 }))).toMatchObject({ effect: 'deny' })
    expect(await made(1).decide(action({ depth: 1 }))).toBeUndefined()
    expect(made(0).hash).not.toBe(made(1).hash)
    expect(made(1).hash).toBe(made(1).hash)
  })

  test('values that are changed later change nothing', async () => {
    const values = { tools: ['a'] }
    const policy = rules(
      [{ when: ({ tool }, { tools }) => tools.includes(tool), effect: 'deny' }],
      {
        values,
      },
    )
    values.tools.push('b')
    expect(await policy.decide(action({ tool: 'b' }))).toBeUndefined()
  })
})
