import { isDeepFrozen } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { messageFromJSON, messageToJSON } from '../contract/message-json.ts'
import { contentOf, ToolResultMessage } from '../contract/message.ts'
import { llm } from '../llm.ts'
import { Audio } from '../media/byte-media.ts'
import { Image } from '../media/image.ts'
import { calls, says, scripted } from '../testing/index.ts'
import { ToolResultError, toResultJson } from './result.ts'

const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)

class Account {
  readonly id = 7
  readonly opened = new Date(0)
  readonly close = (): void => {}
  #secret = 'hidden'
  get secret(): string {
    return this.#secret
  }
}

describe('the result rule', () => {
  const cases: [name: string, returned: unknown, json: unknown][] = [
    ['nothing', undefined, null],
    ['a member that is undefined', { a: undefined, b: [undefined] }, { b: [null] }],
    ['minus zero', [-0], [0]],
    ['a Date', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
    ['a bigint', { n: 12345678901234567890n }, { n: '12345678901234567890' }],
    ['a Set', new Set([1, new Date(0)]), [1, '1970-01-01T00:00:00.000Z']],
    ['a Map of text keys', new Map([['a', 1n]]), { a: '1' }],
    ['another Map', new Map([[1, { a: undefined }]]), [[1, {}]]],
    ['bytes', { data: Uint8Array.of(0, 255) }, { data: { $bytes: 'AP8=' } }],
    ['a Buffer', Buffer.from([0, 255]), { $bytes: 'AP8=' }],
    ['an ArrayBuffer', Uint8Array.of(0, 255).buffer, { $bytes: 'AP8=' }],
    ['a DataView', new DataView(Uint8Array.of(9, 0, 255).buffer, 1), { $bytes: 'AP8=' }],
    ['numbers in a typed array', Float64Array.of(0.5, -1), [0.5, -1]],
    ['64-bit integers', BigInt64Array.of(-1n), ['-1']],
    ['an Error', new TypeError('no'), { name: 'TypeError', message: 'no' }],
    [
      'an Error with a code',
      Object.assign(new Error('no'), { code: 'ENOENT', request: { key: 'secret' } }),
      { name: 'Error', message: 'no', code: 'ENOENT' },
    ],
    ['an instance of a class', new Account(), { id: 7, opened: '1970-01-01T00:00:00.000Z' }],
    ['toJSON', { url: new URL('https://example.com/') }, { url: 'https://example.com/' }],
    ['toJSON that returns null', { toJSON: () => null }, null],
    ['toJSON that returns the object itself', selfJson(), { a: 1 }],
    ['a regular expression', /a+/g, '/a+/g'],
    ['a boxed text', new String('a'), 'a'],
    ['a sparse array', [1, , 3], [1, null, 3]], // oxlint-disable-line no-sparse-arrays
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    [
      'an image',
      Image.fromBytes(png),
      { type: 'image', source: { type: 'base64', data: 'iVBORw0KGgo=' }, mimeType: 'image/png' },
    ],
  ]

  test.each(cases)('%s', (_name, returned, json) => {
    const result = toResultJson(returned)
    expect(result).toEqual(json)
    expect(JSON.parse(JSON.stringify(result))).toEqual(json)
    expect(isDeepFrozen(result)).toBe(true)
  })

  const wide = Array.from({ length: 600_000 }, () => 0)
  const refused: [name: string, returned: () => unknown, message: string][] = [
    ['NaN', () => ({ rows: [{ score: NaN }] }), 'result.rows[0].score is NaN'],
    ['a member whose name is no word', () => ({ 'a b': [NaN] }), 'result["a b"][0] is NaN'],
    ['infinity', () => [Float32Array.of(-Infinity)], 'result[0][0] is -Infinity'],
    ['an invalid Date', () => new Date(NaN), 'result is an invalid Date'],
    ['a function', () => ({ 'to do': () => 1 }), 'result["to do"] is a function'],
    ['a symbol', () => [Symbol('x')], 'result[0] is a symbol'],
    ['a cycle', cyclic, 'result.next.next is a cycle'],
    ['a promise', () => ({ later: Promise.resolve(1) }), 'result.later is a Promise'],
    ['a response', () => new Response('x'), 'result is a Response'],
    ['a getter that throws', () => throwingGetter(), 'result.inner cannot be read: no'],
    ['a proxy that throws', () => ({ p: throwingProxy() }), 'result.p cannot be read: trap'],
    ['a depth of 600', () => deep(600), 'is nested deeper than 512 levels'],
    ['toJSON without an end', () => endless(), 'is nested deeper than 512 levels'],
    [
      'a huge sparse array',
      () => ({ a: Object.assign([], { length: 2 ** 32 - 1 }) }),
      'result.a has 4294967295 items',
    ],
    ['the same list twice', () => [wide, wide], 'result[1] has 600000 items'],
  ]

  test.each(refused)('%s is refused with its path', (_name, returned, message) => {
    const value = returned()
    expect(() => toResultJson(value)).toThrow(ToolResultError)
    expect(() => toResultJson(value)).toThrow(message)
  })

  test('a key named __proto__ is data and changes no prototype', () => {
    const result = toResultJson(JSON.parse('{"__proto__":{"admin":true}}'))
    expect(JSON.stringify(result)).toBe('{"__proto__":{"admin":true}}')
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype)
  })

  test('the result is a frozen copy; the object of the tool stays as it was', () => {
    const own = { list: [1] }
    const result = toResultJson(own) as typeof own
    own.list.push(2)
    expect(result).toEqual({ list: [1] })
    expect(Object.isFrozen(result.list) && !Object.isFrozen(own)).toBe(true)
  })

  test('media blocks come back with their bytes', () => {
    const wav = new TextEncoder().encode('RIFF\0\0\0\0WAVEfmt ')
    const result = toResultJson([Audio.fromBytes(wav, 'audio/wav'), Image.fromBytes(png)])
    const [audio, image] = contentOf(JSON.parse(JSON.stringify(result)))
    expect(audio).toMatchObject({ type: 'audio', mimeType: 'audio/wav', data: wav })
    expect(image).toMatchObject({ type: 'image', source: { type: 'base64' } })
  })
})

const odd: readonly (() => unknown)[] = [
  () => new Error('no'),
  () => Object.assign(new Error('no'), { message: 5 }),
  () => throwingProxy(),
  () => throwingGetter(),
  () => Proxy.revocable({}, {}).proxy,
  () => Proxy.revocable([], {}).proxy,
  () => new Proxy([], { get: (_, key) => (key === 'length' ? -1 : 0) }),
  () => cyclic(),
  () => deep(20_000),
  () => endless(),
  () => selfJson(),
  () => new Account(),
  () => Image.fromBytes(png),
  () => Promise.resolve(1),
  () => new WeakMap(),
  () => (function* () {})(),
  () => new Response('x'),
  () => Object.assign([], { length: 2 ** 32 - 1 }),
  () => Symbol('x'),
  () => () => 1,
  () => JSON.parse('{"__proto__":1}'),
  () => ({ $bytes: 'AP8=' }),
  () => ({ $escaped: { $bytes: 1 } }),
  () => ({ type: 'audio', data: { $bytes: '%' }, mimeType: 'audio/wav' }),
]

test('law: whatever a tool returns or throws, it runs once and the history is JSON', async () => {
  // Thunks, because the generator itself would trip over some of the values.
  const anything = fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withNullPrototype: true,
    withObjectString: true,
    withSparseArray: true,
    withTypedArray: true,
  })
  const value: fc.Arbitrary<() => unknown> = fc.oneof(
    anything.map((given) => () => given),
    fc.constantFrom(...odd),
    fc.dictionary(fc.string(), fc.constantFrom(...odd)).map((makers) => () => {
      const entries = Object.entries(makers).map(([key, make]) => [key, make()])
      return Object.fromEntries(entries) as unknown
    }),
  )
  await fc.assert(
    fc.asyncProperty(value, fc.boolean(), async (make, throws) => {
      const given = make()
      let ran = 0
      const tool = {
        name: 'odd',
        description: '',
        parameters: {},
        run: (): unknown => {
          ran++
          if (throws) throw given
          return given
        },
      }
      const model = scripted([calls('odd', {}), says('Done.')])
      const turn = await llm({ model, tools: [tool] }).generate('go')
      expect(ran).toBe(1)
      if (!throws) expectFrozen(given)
      expect(turn.response.text).toBe('Done.')
      const [execution] = turn.toolExecutions
      expect(JSON.stringify(toStable(execution!.result))).toBe(JSON.stringify(execution!.result))
      expect(toStable(execution!.result)).toEqual(execution!.result)
      const message = turn.messages.find((one) => one instanceof ToolResultMessage)!
      const json = messageToJSON(message)
      expect(messageToJSON(messageFromJSON(toStable(json)))).toEqual(json)
    }),
    { seed: 5, numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 400 },
  )
})

/** What `toResultJson` makes of a value, if it accepts it, is frozen before anything else freezes it. */
function expectFrozen(given: unknown): void {
  let result: unknown
  try {
    result = toResultJson(given)
  } catch {
    return
  }
  expect(isDeepFrozen(result)).toBe(true)
}

const toStable = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

function cyclic(): unknown {
  const first: Record<string, unknown> = {}
  first['next'] = { next: first }
  return first
}

function deep(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

function endless(): unknown {
  return { toJSON: endless }
}

function selfJson(): unknown {
  return {
    a: 1,
    toJSON(): unknown {
      return this
    },
  }
}

function throwingGetter(): unknown {
  return {
    inner: {
      get value(): unknown {
        throw new Error('no')
      },
    },
  }
}

function throwingProxy(): unknown {
  const trap = (): never => {
    throw new Error('trap')
  }
  return new Proxy({}, { get: trap, getPrototypeOf: trap, has: trap, ownKeys: trap })
}
