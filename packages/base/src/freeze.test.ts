import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { deepFreeze, freezeTree, FrozenData, frozenCopy, isDeepFrozen } from '@skein/base'

/** Every object below a value, found by plain recursion. */
function below(value: unknown, found = new Set<object>()): Set<object> {
  if (typeof value !== 'object' || value === null || found.has(value)) return found
  found.add(value)
  for (const child of Object.values(value)) below(child, found)
  return found
}

test('freezes everything below and returns the value itself', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      expect(isDeepFrozen(value)).toBe([...below(value)].length === 0)
      expect(deepFreeze(value)).toBe(value)
      expect([...below(value)].every(Object.isFrozen)).toBe(true)
      expect(isDeepFrozen(value)).toBe(true)
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 10_000 : 300, seed: 1 },
  )
})

test('a shallow frozen object is gone through', () => {
  const inner = { list: [1] }
  const outer = Object.freeze({ inner })
  expect(isDeepFrozen(outer)).toBe(false)
  deepFreeze(outer)
  expect(Object.isFrozen(inner.list)).toBe(true)
  expect(isDeepFrozen(outer)).toBe(true)
})

test('what others have frozen all the way down counts', () => {
  expect(isDeepFrozen(Object.freeze({ a: Object.freeze([Object.freeze({})]) }))).toBe(true)
  expect(isDeepFrozen(Object.freeze({ a: Object.freeze([{}]) }))).toBe(false)
})

test('asking about a graph that is not frozen leaves no mark on its frozen parts', () => {
  const child: { a?: unknown } = {}
  const middle = Object.freeze({ child })
  const top = Object.freeze({ middle })
  expect(isDeepFrozen(top)).toBe(false)
  expect(isDeepFrozen(middle)).toBe(false)
  Object.freeze(child)
  expect(isDeepFrozen(top)).toBe(true)
})

test('freezeTree freezes what deepFreeze freezes', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      expect(freezeTree(value)).toBe(value)
      expect([...below(value)].every(Object.isFrozen)).toBe(true)
      expect(isDeepFrozen(value)).toBe(true)
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 10_000 : 300, seed: 2 },
  )
})

test('freezeTree also ends for cycles, shared parts, many parts and deep ones', () => {
  const cycle: Record<string, unknown> = { list: [{}] }
  cycle['self'] = cycle
  let shared: unknown = {}
  for (let i = 0; i < 100; i++) shared = [shared, shared]
  const many = Array.from({ length: 5000 }, () => ({ a: {} }))
  let deep: unknown[] = []
  for (let i = 0; i < 100_000; i++) deep = [deep]
  const half = Object.freeze({ open: { list: [1] } })
  for (const value of [cycle, shared, many, deep, half]) {
    freezeTree(value)
    expect(isDeepFrozen(value)).toBe(true)
  }
  expect(Object.isFrozen(many[4999]!.a) && Object.isFrozen(half.open.list)).toBe(true)
})

test('FrozenData is taken for deeply frozen by itself, and only its instances are', () => {
  let reads = 0
  class Note extends FrozenData {
    readonly lines = freezeTree([{ text: 'a' }])
    get probe(): number {
      return reads++
    }
    constructor() {
      super()
      Object.freeze(this)
    }
  }
  const note = new Note()
  deepFreeze({ note })
  freezeTree([note])
  expect(isDeepFrozen(note)).toBe(true)
  expect(reads).toBe(0)
  const imitation = Object.freeze(Object.assign(Object.create(Note.prototype), { lines: [{}] }))
  expect(isDeepFrozen(imitation)).toBe(false)
})

test('cycles end', () => {
  const a: Record<string, unknown> = { list: [] }
  a['self'] = a
  ;(a['list'] as unknown[]).push(a)
  expect(isDeepFrozen(a)).toBe(false)
  deepFreeze(a)
  expect(Object.isFrozen(a['list'])).toBe(true)
  expect(isDeepFrozen(a)).toBe(true)
})

test('100,000 levels do not overflow the stack', () => {
  let value: unknown[] = []
  const bottom = value
  for (let i = 0; i < 100_000; i++) value = [value]
  deepFreeze(value)
  expect(Object.isFrozen(bottom)).toBe(true)
  expect(isDeepFrozen(value)).toBe(true)
})

test('a frozen graph is not walked again when it gets a new owner', () => {
  let reads = 0
  const counting = { get probe() { return reads++ }, child: {} } // prettier-ignore
  deepFreeze(counting)
  const before = reads
  for (let i = 0; i < 10; i++) deepFreeze({ history: [counting], i })
  expect(reads).toBe(before)
})

test('a large object with nothing below it is not walked again either', () => {
  let reads = 0
  const large = { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, get probe() { return reads++ } } // prettier-ignore
  deepFreeze(large)
  deepFreeze({ large })
  expect(reads).toBe(1)
})

test('a getter that throws leaves no graph marked as frozen', () => {
  const child = { list: [1] }
  const bad = { a: { child }, get b(): unknown { throw new Error('no') } } // prettier-ignore
  const outer = { child, bad }
  expect(() => deepFreeze(outer)).toThrow('no')
  expect(() => isDeepFrozen(outer)).toThrow('no')
})

describe('what is left as it is', () => {
  class Point {
    x = { y: 1 }
  }

  test.each<[string, object]>([
    ['typed array', new Uint8Array([1, 2])],
    ['ArrayBuffer', new ArrayBuffer(1)],
    ['DataView', new DataView(new ArrayBuffer(1))],
    ['Map', new Map([[1, {}]])],
    ['Set', new Set([{}])],
    ['Date', new Date()],
    ['RegExp', /a/g],
    ['function', () => 1],
    ['Promise', Promise.resolve()],
  ])('%s', (_title, value) => {
    const owner = deepFreeze({ value })
    expect(Object.isFrozen(owner)).toBe(true)
    expect(Object.isFrozen(value)).toBe(false)
    expect(isDeepFrozen(owner)).toBe(true)
    expect(isDeepFrozen(value)).toBe(true)
  })

  test('but a class instance is frozen', () => {
    const point = deepFreeze(new Point())
    expect(Object.isFrozen(point) && Object.isFrozen(point.x)).toBe(true)
  })
})

describe('frozenCopy', () => {
  test('copies plain data, freezes the copy and leaves the original as it was', () => {
    const original = { list: [{ a: 1 }], none: undefined }
    const copy = frozenCopy(original)
    expect(copy).toEqual(original)
    expect(copy).not.toBe(original)
    expect(isDeepFrozen(copy)).toBe(true)
    original.list[0]!.a = 2
    expect(copy.list[0]!.a).toBe(1)
  })

  test('keeps frozen objects, instances and what it is asked to keep', () => {
    const frozen = Object.freeze({ a: 1 })
    const model = { provider: 'x' }
    const date = new Date(0)
    const copy = frozenCopy({ frozen, model, date }, (value) => 'provider' in value)
    expect(copy.frozen).toBe(frozen)
    expect(copy.model).toBe(model)
    expect(copy.date).toBe(date)
  })

  test('copies cycles and shared objects as such; __proto__ is data', () => {
    const shared = { b: 1 }
    const original: Record<string, unknown> = { one: shared, two: shared }
    original['self'] = original
    const copy = frozenCopy(original)
    expect(copy['self']).toBe(copy)
    expect(copy['one']).toBe(copy['two'])
    expect(Object.keys(frozenCopy(JSON.parse('{"__proto__":{"x":1}}') as object))).toEqual([
      '__proto__',
    ])
  })
})
