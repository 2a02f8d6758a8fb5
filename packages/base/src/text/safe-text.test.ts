import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { callText, escapeJson, safeJson, safeText, SafeTextStream } from './safe-text.ts'

/** Text that people write, in which no character may change. */
const ordinary = [
  'Grüße,\n\tשלום 你好 👋🏽',
  'مرحبا بالعالم، كيف حالك؟ ٣٫١٤',
  'می‌خواهم نمی‌دانم', // Persian, with zero-width non-joiners
  'क्‍ष and क्‌ष, র‍্য, ශ්‍රී ලංකා', // with joiners
  'עִבְרִית עם נִקּוּד, العَرَبِيَّةُ بِالحَرَكَاتِ',
  '👨‍👩‍👧‍👦 👩🏽‍🚀 🏳️‍🌈 ❤️‍🔥 ☺︎ 1️⃣ #️⃣ 🇫🇷 🏴󠁧󠁢󠁥󠁮󠁧󠁿',
  '葛󠄀城 and 神︀', // variants of ideographs
  'ᠠᠡ᠋ᠢ',
  'Việt Nam, Đắk Lắk, Z̧͑ͅ, ไทยน้ำ, བོད་སྐད།, ខ្មែរ',
  '{\n  "indented": {\n        "deep": true\n  }\n}',
  'a\u00a0b, 1\u202f000 €',
]

test.each(ordinary)('ordinary text stays as it is: %s', (text) => {
  expect(safeText(text)).toBe(text)
})

test('line breaks of Windows become ordinary ones', () => {
  expect(safeText('a\r\nb')).toBe('a\nb')
})

describe('made visible', () => {
  test.each([
    ['a command of a terminal', 'a\u001b[2Jb', 'a\\u{1b}[2Jb'],
    ['C1 CSI', '\u009b2J', '\\u{9b}2J'],
    ['OSC 52', '\u001b]52;c;aGk=\u0007', '\\u{1b}]52;c;aGk=\\u{7}'],
    ['the right-to-left override', 'pay \u202e001\u202c', 'pay \\u{202e}001\\u{202c}'],
    ['isolates and marks', '\u2066a\u2069\u200f\u061c', '\\u{2066}a\\u{2069}\\u{200f}\\u{61c}'],
    [
      'a zero-width space and a bare carriage return',
      'in\u200bvisible\r',
      'in\\u{200b}visible\\u{d}',
    ],
    ['joiners between Latin letters', 'a\u200db\u200cc', 'a\\u{200d}b\\u{200c}c'],
    ['a joiner after an emoji and before a letter', '👋\u200da', '👋\\u{200d}a'],
    ['a style on a digit', '1\ufe0f0', '1\\u{fe0f}0'],
    ['half a character', 'half \ud800', 'half \\u{d800}'],
    ['line separators', 'a\u2028b\u2029c\u0085d', 'a\\u{2028}b\\u{2029}c\\u{85}d'],
    ['invisible letters', 'a\u3164b\u115fc', 'a\\u{3164}b\\u{115f}c'],
    ['tag characters', 'ok\u{e0041}\u{e0042}', 'ok\\u{e0041}\\u{e0042}'],
    ['delete', 'a\u007f', 'a\\u{7f}'],
  ])('%s', (_, text, shown) => expect(safeText(text)).toBe(shown))

  test('one line has no line breaks and tabs', () => {
    expect(safeText('a\nb\tc', { isLine: true })).toBe('a\\u{a}b\\u{9}c')
  })

  test('long white space is counted', () => {
    expect(safeText(`a${' '.repeat(3000)}b`, { isLine: true })).toBe('a [3000 blank characters] b')
    expect(safeText(`a${' \u3000\u2800'.repeat(1000)}b`)).toBe('a [3000 blank characters] b')
    expect(safeText(`a${'\n'.repeat(100)}b`)).toBe('a [100 blank characters] b')
    expect(safeText(`a${' '.repeat(150)}b`)).toBe(`a${' '.repeat(150)}b`)
  })

  test('many hidden characters are counted', () => {
    const hidden = '\\u{200b}'.repeat(4)
    expect(safeText('\u200b'.repeat(3000))).toBe(`${hidden} [2996 more hidden characters]`)
  })

  test('marks that would cover other lines', () => {
    expect(safeText(`a${'\u0301'.repeat(9)}`)).toBe(`a${'\u0301'.repeat(8)}\\u{301}`)
  })

  test('overlong text is cut, between characters', () => {
    expect(safeText('abcdef', { maxChars: 4 })).toBe('abcd… [2 more characters]')
    expect(safeText('abc👋', { maxChars: 4 })).toBe('abc… [2 more characters]')
    expect(safeText('abcd', { maxChars: 4 })).toBe('abcd')
  })
})

/** Any code unit, with the dangerous ones, emoji and joiners often. */
const hostile = fc
  .array(
    fc.oneof(
      fc.nat({ max: 0xffff }).map((unit) => String.fromCharCode(unit)),
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '\u001b[31m',
        '\u009b',
        '\r',
        '\n',
        '\t',
        '\u202e',
        '\u2028',
        '\u0007',
        '\u0000',
      ),
      fc.constantFrom('\u200b', '\u200d', '\u200c', '\ufe0f', '👋', '🏽', 'ب', 'क', '\u0301', '🏴'),
      fc.constantFrom(
        '\u{e0067}',
        '\u{e007f}',
        '\u180b',
        '\u{e0100}',
        '葛',
        ' '.repeat(20),
        'a',
        '1',
      ),
    ),
    { maxLength: 60 },
  )
  .map((parts) => parts.join(''))

/** What no terminal may receive: all controls but line feed and tab, and whatever reorders text. */
const INTERPRETED =
  /[^\P{Cc}\n\t]|[\p{Zl}\p{Zp}\p{Cs}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/u

test('property: nothing that a terminal interprets is left, whatever the text', () => {
  fc.assert(
    fc.property(hostile, fc.boolean(), fc.option(fc.nat(50)), (text, isLine, maxChars) => {
      const shown = safeText(text, { isLine, maxChars: maxChars ?? undefined })
      expect(shown).not.toMatch(INTERPRETED)
      if (isLine) expect(shown).not.toMatch(/[\n\t]/)
    }),
    { numRuns: 2_000 },
  )
})

test('property: text of people stays, however its pieces are put together', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...ordinary), { maxLength: 5 }), (texts) => {
      const text = texts.join(' ')
      expect(safeText(text)).toBe(text)
      expect(safeText(safeText(text))).toBe(text)
    }),
  )
})

test('property: making safe text safe changes nothing', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const once = safeText(text)
      expect(safeText(once)).toBe(once)
    }),
    { numRuns: 2_000 },
  )
})

/** The pieces of a text, cut at any code units. */
function piecesOf(text: string, cuts: readonly number[]): string[] {
  const edges = [0, ...cuts.map((cut) => cut % (text.length + 1)).toSorted((a, b) => a - b)]
  return edges.map((edge, index) => text.slice(edge, edges[index + 1]))
}

describe('a stream', () => {
  test('property: ordinary text in pieces is as it was as a whole', () => {
    const text = fc.array(fc.constantFrom(...ordinary), { maxLength: 3 })
    fc.assert(
      fc.property(text, fc.array(fc.nat(), { maxLength: 20 }), (texts, cuts) => {
        const whole = texts.join('')
        const stream = new SafeTextStream()
        const shown = piecesOf(whole, cuts).map((piece) => stream.push(piece))
        expect(shown.join('') + stream.end()).toBe(whole)
      }),
      { numRuns: 500 },
    )
  })

  test('property: hostile text in pieces leaves nothing that a terminal interprets', () => {
    fc.assert(
      fc.property(hostile, fc.array(fc.nat(), { maxLength: 20 }), (text, cuts) => {
        const stream = new SafeTextStream()
        const shown = piecesOf(text, cuts).map((piece) => stream.push(piece))
        expect(shown.join('') + stream.end()).not.toMatch(INTERPRETED)
      }),
      { numRuns: 1_000 },
    )
  })

  test('words are returned at once; white space is counted across pieces', () => {
    const stream = new SafeTextStream()
    expect(stream.push('Hello')).toBe('Hello')
    expect(stream.push(', world')).toBe(', world')
    for (let i = 0; i < 300; i++) stream.push(' ')
    expect(stream.push('x')).toBe(' [300 blank characters] x')
    expect(stream.end()).toBe('')
  })

  test('endless white space is not kept', () => {
    const stream = new SafeTextStream()
    let shown = ''
    for (let i = 0; i < 100; i++) shown += stream.push(' '.repeat(1000))
    expect(shown.length).toBeGreaterThan(0)
    expect(shown.length).toBeLessThan(2000)
  })
})

test('property: JSON is safe and has the same value', () => {
  fc.assert(
    fc.property(fc.record({ text: hostile, more: fc.jsonValue() }), (value) => {
      const json = safeJson(value)
      expect(json).not.toMatch(INTERPRETED)
      expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)))
      expect(escapeJson(`${json}\n${json}`)).toBe(`${json}\n${json}`)
    }),
    { numRuns: 1_000 },
  )
})

describe('a call', () => {
  test('short arguments are shown as they are', () => {
    expect(callText('refund', { order: 'O-7', amount: 5 })).toBe(
      'refund {"order":"O-7","amount":5}',
    )
    expect(callText('noArguments', {})).toBe('noArguments {}')
  })

  test('spaces do not push the last argument away', () => {
    const line = callText('pay', { note: `gift${' '.repeat(3000)}`, to: 'mallory', amount: 9999 })
    expect(line).toBe('pay {"note":"gift [3000 blank characters] ","to":"mallory","amount":9999}')
  })

  test('a long value is cut, and the names come first', () => {
    const line = callText('pay', { note: 'x'.repeat(5000), to: 'mallory', 'a b': [1] })
    expect(line).toBe(
      `pay (note, to, "a b") {note: "${'x'.repeat(199)}… [4802 more characters], to: "mallory", "a b": [1]}`,
    )
  })

  test('many arguments are counted', () => {
    const args = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`argument${i}`, i]))
    expect(callText('f', args)).toMatch(/^f \(argument0, .*argument99, 50 more\) \{/)
  })

  test('property: every name is seen within the first lines, and nothing is interpreted', () => {
    const args = fc.dictionary(fc.stringMatching(/^[a-z]{1,12}$/), hostile, { maxKeys: 10 })
    fc.assert(
      fc.property(args, hostile, (given, name) => {
        const line = callText(name, given)
        expect(line).not.toMatch(INTERPRETED)
        expect(line).not.toContain('\n')
        for (const key of Object.keys(given)) expect(line.slice(0, 1000)).toContain(key)
      }),
    )
  })
})
