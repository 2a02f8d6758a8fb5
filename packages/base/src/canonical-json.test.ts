import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalJson, SkeinError } from '@skein/base'

const runs = { numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 300, seed: 8785 }

function codeOf(value: unknown): string {
  try {
    return canonicalJson(value)
  } catch (error) {
    if (SkeinError.is(error)) return error.code
    throw error
  }
}

/** The double with these bits. */
function double(hex: string): number {
  const view = new DataView(new ArrayBuffer(8))
  view.setBigUint64(0, BigInt(`0x${hex}`))
  return view.getFloat64(0)
}

describe('RFC 8785', () => {
  test.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['7fffffffffffffff', 'CANONICAL_JSON_UNSUPPORTED'],
    ['7ff0000000000000', 'CANONICAL_JSON_UNSUPPORTED'],
    ['fff0000000000000', 'CANONICAL_JSON_UNSUPPORTED'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('appendix B: the double %s is %s', (bits, text) => {
    expect(codeOf(double(bits))).toBe(text)
    expect(codeOf([double(bits)])).toBe(text.startsWith('C') ? text : `[${text}]`)
  })

  test('§3.2.2: the sample object', () => {
    const sample = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`
    expect(canonicalJson(JSON.parse(sample))).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    )
  })

  test('§3.2.3: members stand in the order of UTF-16 code units', () => {
    const text = canonicalJson({
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\u{1f600}': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    })
    expect(text).toBe(
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis",' +
        '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    )
  })

  test('§3.2.2.2: control characters have their short or their lower-case form, others none', () => {
    const controls = Array.from({ length: 0x20 }, (_, unit) => String.fromCharCode(unit)).join('')
    expect(canonicalJson(controls)).toBe(
      String.raw`"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f"`,
    )
    expect(canonicalJson(['a\\b', 'a"b'])).toBe(String.raw`["a\\b","a\"b"]`)
    expect(canonicalJson('"\\/\u007f\u2028\u2029<')).toBe('"\\"\\\\/\u007f\u2028\u2029<"')
  })

  test('digits as keys are sorted as text, not as numbers', () => {
    expect(canonicalJson({ 10: 1, 9: 2, a: 3, 1: 4 })).toBe('{"1":4,"10":1,"9":2,"a":3}')
  })

  test('many keys are sorted as few are', () => {
    const keys = Array.from({ length: 60 }, (_, i) => `k${(i * 37) % 60}`)
    const text = canonicalJson(Object.fromEntries(keys.map((key) => [key, 0])))
    expect(Object.keys(JSON.parse(text) as object)).toEqual(keys.toSorted())
  })
})

describe('laws', () => {
  const byTheBook = (value: unknown): string => {
    if (typeof value !== 'object' || value === null) return JSON.stringify(value)
    if (Array.isArray(value)) return `[${value.map(byTheBook).join()}]`
    const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
    return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${byTheBook(member)}`).join()}}`
  }

  test('is what a plain reading of the RFC gives', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 6 }), (value) => {
        const isWellFormed = !/\p{Surrogate}/u.test(byTheBook(value))
        if (isWellFormed && !/\\ud[89a-f]/.test(byTheBook(value))) {
          expect(canonicalJson(value)).toBe(byTheBook(value))
        }
      }),
      runs,
    )
  })

  test('parsing and writing again changes nothing', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'grapheme' }), (value) => {
        const text = canonicalJson(value)
        expect(canonicalJson(JSON.parse(text))).toBe(text)
      }),
      runs,
    )
  })

  test('does not depend on the order of keys, few or many', () => {
    const record = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.integer(), { maxKeys: 40 })
    fc.assert(
      fc.property(record, (value) => {
        const reversed = Object.fromEntries(Object.entries(value).toReversed())
        expect(canonicalJson(reversed)).toBe(canonicalJson(value))
      }),
      runs,
    )
  })
})

describe('what JSON.stringify does is kept', () => {
  test('undefined members are dropped; in arrays, and in holes, it is null', () => {
    expect(canonicalJson({ b: undefined, a: 1, c: [undefined] })).toBe('{"a":1,"c":[null]}')
    // oxlint-disable-next-line no-sparse-arrays -- the hole is the point
    expect(canonicalJson([, 1])).toBe('[null,1]')
    expect(canonicalJson({ a: undefined })).toBe('{}')
  })

  test('toJSON is asked, once, with its key', () => {
    const asked: string[] = []
    const value = { toJSON: (key: string) => (asked.push(key), { toJSON: () => 'no', k: key }) }
    // What toJSON returns is not asked again; its own method is then an ordinary member.
    expect(codeOf({ a: value })).toBe('CANONICAL_JSON_UNSUPPORTED')
    expect(asked).toEqual(['a'])
    expect(canonicalJson([new Date(0)])).toBe('["1970-01-01T00:00:00.000Z"]')
    expect(canonicalJson({ a: { toJSON: () => undefined } })).toBe('{}')
    expect(canonicalJson(new SkeinError('m', { code: 'C' }))).toBe(
      '{"code":"C","message":"m","name":"SkeinError"}',
    )
  })

  test('a toJSON that returns its own object does not run for ever', () => {
    const value = Object.create({
      toJSON(this: unknown) {
        return this
      },
    }) as { a: number }
    value.a = 1
    expect(canonicalJson(value)).toBe('{"a":1}')
  })

  test('class instances and objects without a prototype give their fields', () => {
    class Point {
      readonly y = 2
      readonly x = 1
    }
    expect(canonicalJson(new Point())).toBe('{"x":1,"y":2}')
    expect(canonicalJson(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}')
  })
})

describe('refuses', () => {
  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['NaN', Number.NaN],
    ['-Infinity', -Infinity],
    ['bigint', 1n],
    ['a function', () => 1],
    ['a symbol', Symbol('s')],
    ['a Map', new Map()],
    ['a Set', new Set()],
    ['bytes', new Uint8Array(1)],
    ['a RegExp', /a/],
    ['an Error', new Error('x')],
    ['a boxed number', Object(1)],
    ['a Promise', Promise.resolve()],
  ])('%s', (_title, value) => {
    expect(codeOf(value)).toBe('CANONICAL_JSON_UNSUPPORTED')
    if (value !== undefined) expect(codeOf({ deep: [value] })).toBe('CANONICAL_JSON_UNSUPPORTED')
  })

  test.each([
    '\ud800',
    '\udc00',
    'a\ud800b',
    '\udc00\ud800',
    `${'long '.repeat(20)}\ud83d`,
    `"${'\\'.repeat(60)}\udfff`,
  ])('the lone surrogate in %j, as value and as key', (text) => {
    expect(codeOf(text)).toBe('CANONICAL_JSON_LONE_SURROGATE')
    expect(codeOf({ [text]: 1 })).toBe('CANONICAL_JSON_LONE_SURROGATE')
  })

  test('but not a text that only looks like its escape', () => {
    expect(canonicalJson(`\\ud800${'x'.repeat(60)}`)).toBe(`"\\\\ud800${'x'.repeat(60)}"`)
    expect(canonicalJson('😀'.repeat(40))).toBe(`"${'😀'.repeat(40)}"`)
  })

  test('cycles of every length, at every depth, before going round for long', () => {
    for (const around of [0, 1, 2, 3, 5, 9, 17]) {
      for (const length of [1, 2, 3, 4, 7, 16]) {
        let visits = 0
        const ring = Array.from({ length }, (): Record<string, unknown> => ({
          get count() {
            return visits++
          },
        }))
        ring.forEach((node, i) => (node['next'] = ring[(i + 1) % length]))
        let value: unknown = ring[0]
        for (let i = 0; i < around; i++) value = [value]
        expect(codeOf(value)).toBe('CANONICAL_JSON_CYCLE')
        expect(visits).toBeLessThanOrEqual(2 * (around + length) + 2)
      }
    }
    const array: unknown[] = []
    array.push(array)
    expect(codeOf(array)).toBe('CANONICAL_JSON_CYCLE')
  })

  test('but not an object that stands in two places', () => {
    const shared = { a: 1 }
    expect(canonicalJson([shared, { shared }])).toBe('[{"a":1},{"shared":{"a":1}}]')
    const many = Array.from({ length: 3000 }, () => shared)
    expect(canonicalJson(many)).toBe(JSON.stringify(many))
  })

  test('more than 1,000 levels', () => {
    const nested = (depth: number) => {
      let value: unknown = 0
      for (let i = 0; i < depth; i++) value = i % 2 ? [value] : { a: value }
      return value
    }
    expect(codeOf(nested(1000))).toMatch(/^\[{"a":/)
    expect(codeOf(nested(1001))).toBe('CANONICAL_JSON_TOO_DEEP')
    expect(codeOf(nested(200_000))).toBe('CANONICAL_JSON_TOO_DEEP')
  })

  test('and names the member', () => {
    expect(() => canonicalJson({ price: Number.NaN })).toThrow('The value at "price" is NaN')
    expect(() => canonicalJson([0, 1n])).toThrow('The value at "1" is a bigint')
  })
})
