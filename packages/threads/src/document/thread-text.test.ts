import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { agentTurn, fullThread, response, text, thread, userTurn } from '../../test/samples.ts'
import {
  InvalidThreadError,
  ThreadError,
  ThreadLimitError,
  UnsupportedVersionError,
  keepJsonText,
  parseFragment,
  parseJson,
  parseThread,
  safeParseThread,
  stringifyJson,
  stringifyThread,
} from '../index.ts'
import { numberText } from '../json/json-stringify.ts'

const runs = process.env['SKEIN_DEEP'] ? 5_000 : 300

/** Text of a thread with this JSON text somewhere inside. */
function threadText(inner: string): string {
  return stringifyThread(thread([userTurn('hi')], { metadata: { slot: 'SLOT' } })).replace(
    '"SLOT"',
    inner,
  )
}

function caught(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}

describe('number text', () => {
  test('numbers come back as they were written', () => {
    const numbers = [
      '18.0',
      '-0.0',
      '-0',
      '12345678901234567890',
      '1e2',
      '1E+2',
      '0.10',
      '1e400',
      '9007199254740993',
      '1.50',
    ]
    for (const number of numbers) {
      for (const inner of [
        `{"n":${number}}`,
        `[${number}]`,
        `[1,[${number},2]]`,
        `{"a":{"b":[0,${number}]}}`,
      ]) {
        const source = threadText(inner)
        expect(stringifyThread(parseThread(source))).toBe(source)
      }
    }
  })

  test('values are plain numbers, and a changed value is printed as it is now', () => {
    const parsed = parseThread(threadText('{"n":18.0,"m":1.0}')) as unknown as {
      metadata: { slot: Record<string, unknown> }
    }
    const slot = parsed.metadata.slot
    expect(slot['n']).toBe(18)
    expect(numberText(slot, 'n')).toBe('18.0')
    slot['n'] = 19
    expect(numberText(slot, 'n')).toBeUndefined()
    expect(stringifyJson(slot)).toBe('{"n":19,"m":1.0}')
    expect(stringifyJson(keepJsonText(slot, { ...slot }))).toBe('{"n":19,"m":1.0}')
  })

  test('keys that look like integers keep their place', () => {
    const source = threadText('{"b":1,"10":{"x":2.0},"2":[],"a":0}')
    expect(stringifyThread(parseThread(source))).toBe(source)
  })

  test('white space is not data, and an indent can be asked for', () => {
    const loose = JSON.stringify(JSON.parse(threadText('{"n":[1,{"x":null}]}')), null, 3)
    expect(stringifyThread(parseThread(loose))).toBe(JSON.stringify(JSON.parse(loose)))
    expect(stringifyThread(parseThread(loose), { indent: 2 })).toBe(
      JSON.stringify(JSON.parse(loose), null, 2),
    )
    const exact = stringifyThread(parseThread(threadText('{"n":[18.0,{},[],{"x":"a\\nb"}]}')), {
      indent: 2,
    })
    expect(exact).toBe(
      JSON.stringify(JSON.parse(threadText('{"n":["@",{},[],{"x":"a\\nb"}]}')), null, 2).replace(
        '"@"',
        '18.0',
      ),
    )
  })

  test('any JSON text is printed again unchanged', { timeout: 120_000 }, () => {
    const number = fc.oneof(
      fc.integer().map(String),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
      fc.constantFrom(
        '18.0',
        '-0.0',
        '1e5',
        '1E-7',
        '0.100',
        '123456789012345678901',
        '-0',
        '2.50e+10',
      ),
    )
    const string = fc.string({ unit: 'binary', maxLength: 8 }).map((value) => JSON.stringify(value))
    const key = fc.oneof(
      string,
      fc.constantFrom('"__proto__"', '"1"', '"0"', '"constructor"', '"a\\\\"', '"\\""', '""'),
    )
    const { json } = fc.letrec<{ json: string }>((tie) => ({
      json: fc.oneof(
        { maxDepth: 4, depthSize: 'small' },
        number,
        string,
        fc.constantFrom('true', 'false', 'null'),
        fc.array(tie('json'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
        fc
          .uniqueArray(fc.tuple(key, tie('json')), {
            maxLength: 4,
            selector: ([name]) => JSON.parse(name) as string,
          })
          .map((members) => `{${members.map(([name, value]) => `${name}:${value}`).join(',')}}`),
      ),
    }))
    fc.assert(
      fc.property(json, (inner) => {
        const source = `[${inner}]`
        const { value, duplicates } = parseJson(source)
        expect(duplicates).toEqual([])
        expect(stringifyJson(value)).toBe(source)
        expect(value).toEqual(JSON.parse(source))
      }),
      { seed: 4, numRuns: runs * 4 },
    )
  })
})

describe('what text can do to a reader', () => {
  test('__proto__ is a key like any other', () => {
    for (const inner of [
      '{"__proto__":{"polluted":true}}',
      '{"__proto__":{"polluted":1.0},"2":1,"1":2}',
    ]) {
      const source = threadText(inner)
      const parsed = parseThread(source)
      expect(stringifyThread(parsed)).toBe(source)
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
      expect(Object.getPrototypeOf((parsed.metadata as { slot: object }).slot)).toBe(
        Object.prototype,
      )
    }
  })

  test('a repeated key is a warning, the last value wins; in strict it is an error', () => {
    const source = threadText('{"a":1,"b":2,"a":3}')
    const reading = safeParseThread(source)
    expect(reading.ok && reading.thread.metadata).toEqual({ slot: { a: 3, b: 2 } })
    expect(reading.issues).toMatchObject([
      { code: 'duplicate_key', severity: 'warning', pointer: '/metadata/slot/a' },
    ])
    expect(caught(() => parseThread(source, { profile: 'strict' }))).toBeInstanceOf(
      InvalidThreadError,
    )
  })

  test('depth, length and counts have limits', () => {
    const deep = threadText('['.repeat(300) + ']'.repeat(300))
    const error = caught(() => parseThread(deep))
    expect(error).toBeInstanceOf(ThreadLimitError)
    expect(error).toMatchObject({ code: 'THREAD_LIMIT', limit: 'maxDepth', max: 256 })
    expect(stringifyThread(parseThread(deep, { limits: { maxDepth: 400 } }))).toBe(deep)
    const bottomless = '['.repeat(1_000_000) + ']'.repeat(1_000_000)
    expect(caught(() => parseThread(bottomless, { limits: { maxDepth: 1e9 } }))).toMatchObject({
      limit: 'maxDepth',
    })

    const source = stringifyThread(
      thread([
        userTurn('a'),
        agentTurn('ada', [response('ada', 1, text('b')), response('ada', 2, text('c'))]),
      ]),
    )
    expect(caught(() => parseThread(source, { limits: { maxLength: 10 } }))).toMatchObject({
      limit: 'maxLength',
    })
    expect(caught(() => parseThread(source, { limits: { maxTurns: 1 } }))).toMatchObject({
      limit: 'maxTurns',
    })
    expect(caught(() => parseThread(source, { limits: { maxMessages: 1 } }))).toMatchObject({
      limit: 'maxMessages',
    })
    expect(
      caught(() => parseThread(source, { limits: { maxTurns: 2, maxMessages: 2 } })),
    ).toBeUndefined()
  })

  test('depth is counted alike on the fast and on the exact path', () => {
    for (const inner of ['1', '1.0']) {
      const nested = '['.repeat(10) + inner + ']'.repeat(10)
      expect(caught(() => parseJson(nested, { maxDepth: 9 }))).toBeInstanceOf(ThreadLimitError)
      expect(caught(() => parseJson(nested, { maxDepth: 10 }))).toBeUndefined()
    }
  })

  test('broken text is a typed error that does not quote it', () => {
    for (const broken of ['', '{', '{"a":}', '{"version":"sk-canary-123" oops', 'nul']) {
      const error = caught(() => parseThread(broken)) as ThreadError
      expect(error).toBeInstanceOf(ThreadError)
      expect(error.code).toBe('INVALID_JSON')
      expect(`${error.message}${String(error.cause)}`).not.toContain('canary')
      expect(safeParseThread(broken)).toMatchObject({
        ok: false,
        issues: [{ code: 'invalid_json' }],
      })
    }
  })

  test('lone surrogates are kept', () => {
    const source = threadText('"\\ud800 and \\udfff"')
    expect(stringifyThread(parseThread(source))).toBe(source)
    const reading = safeParseThread(stringifyThread(thread([userTurn('\ud800')])), {
      profile: 'strict',
    })
    expect(reading.issues).toMatchObject([{ code: 'lone_surrogate', severity: 'warning' }])
  })
})

describe('documents', () => {
  test('TP-50 a thread has one version, which reading and writing never change', () => {
    const newer = stringifyThread(fullThread()).replace('"2.0.0"', '"2.7.1"')
    const reading = safeParseThread(newer)
    expect(reading.issues).toMatchObject([{ code: 'newer_version', severity: 'warning' }])
    expect(reading.ok && stringifyThread(reading.thread)).toBe(newer)
    expect(stringifyThread(parseThread(newer))).toBe(newer)
    expect(parseThread(newer).version).toBe('2.7.1')

    const other = stringifyThread(fullThread()).replace('"2.0.0"', '"3.0.0"')
    const error = caught(() => parseThread(other)) as UnsupportedVersionError
    expect(error).toBeInstanceOf(UnsupportedVersionError)
    expect(error).toMatchObject({ code: 'UNSUPPORTED_VERSION', version: '3.0.0' })
    expect(stringifyJson(error.document)).toBe(other)
  })

  test('an invalid thread names the first error and carries all of them', () => {
    const error = caught(() => parseThread('{"version":"2.0.0","turns":7}')) as InvalidThreadError
    expect(error).toBeInstanceOf(InvalidThreadError)
    expect(error.code).toBe('INVALID_THREAD')
    expect(error.issues.length).toBeGreaterThan(3)
    expect(error.message).toContain('/thread_id')
  })

  test('without a profile broken rules are reported, not refused; with one they are refused', () => {
    const source = stringifyThread(thread([agentTurn('eve', [response('eve', 1, text('hi'))])]))
    const reading = safeParseThread(source)
    expect([reading.ok, reading.issues[0]?.code]).toEqual([true, 'unknown_agent'])
    expect(stringifyThread(parseThread(source))).toBe(source)
    for (const profile of ['strict', 'standard'] as const) {
      expect(caught(() => parseThread(source, { profile }))).toBeInstanceOf(InvalidThreadError)
      expect(safeParseThread(source, { profile }).ok).toBe(false)
    }
    expect(safeParseThread(source, { profile: 'lenient' }).ok).toBe(true)
    const broken = source.replace('"2.0.0"', '"2.0.0","title":7')
    expect(caught(() => parseThread(broken))).toBeInstanceOf(InvalidThreadError)
  })

  test('fragments: turns without a registry, as the specification shows them', () => {
    const { turns } = fullThread()
    expect(parseFragment(JSON.stringify({ turns }))).toEqual(turns)
    expect(parseFragment(JSON.stringify(turns))).toEqual(turns)
    expect(caught(() => parseFragment('{"turns":[{"turn_type":"user"}]}'))).toBeInstanceOf(
      InvalidThreadError,
    )
  })

  test(
    'TP-52 unknown fields at every level survive reading and writing',
    { timeout: 120_000 },
    () => {
      fc.assert(
        fc.property(
          fc.integer({ min: 0, max: 1_000_000 }),
          fc.dictionary(fc.string({ maxLength: 6 }), fc.jsonValue(), { minKeys: 1, maxKeys: 3 }),
          (pick, extra) => {
            const source = JSON.stringify(withExtra(fullThread(), pick, extra))
            const reading = safeParseThread(source)
            expect(stringifyJson(reading.ok ? reading.thread : reading.document)).toBe(source)
            if (reading.ok) {
              expect(stringifyThread(reading.thread)).toBe(source)
              expect(stringifyThread(parseThread(source))).toBe(source)
            }
          },
        ),
        { seed: 52, numRuns: runs },
      )
    },
  )
})

/** A copy with the extra fields (under names of no meaning) added to one of its objects. */
function withExtra(document: unknown, pick: number, extra: object): unknown {
  const copy = structuredClone(document)
  const objects: object[] = []
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if (!Array.isArray(value)) objects.push(value)
    Object.values(value).forEach(collect)
  }
  collect(copy)
  const target = objects[pick % objects.length]!
  for (const [key, value] of Object.entries(extra)) Object.assign(target, { [`x-${key}`]: value })
  return copy
}

describe('TP-50 what a reader is told', () => {
  const good = stringifyThread(thread([userTurn('hi')]))

  test('TP-50 of a version that it does not know, and of a document without one', () => {
    const old = good.replace('"2.0.0"', `"${'9'.repeat(50)}"`)
    const error = caught(() => parseThread(old)) as UnsupportedVersionError
    expect(error).toBeInstanceOf(UnsupportedVersionError)
    expect(error).toMatchObject({
      code: 'UNSUPPORTED_VERSION',
      version: '9'.repeat(50),
      document: JSON.parse(old) as object,
    })
    expect(error.message).toContain(`"${'9'.repeat(40)}"`)
    // Whatever else such a document has or lacks, its version is what has to be known of it.
    for (const other of [
      '{"version":"1.0.0"}',
      '{"version":"3.0.0","version":"1.0.0","thread_id":5,"turns":[7]}',
      '{"version":"1.0.0","thread_id":"","created_at":"now","agents":[],"turns":{},"actions":[]}',
    ]) {
      const document = JSON.parse(other) as object
      for (const profile of [undefined, 'strict', 'standard', 'lenient'] as const)
        expect(caught(() => parseThread(other, profile && { profile }))).toMatchObject({
          code: 'UNSUPPORTED_VERSION',
          version: '1.0.0',
          document,
        })
    }
    for (const version of [
      '2',
      '2.0',
      '2.0.0.0',
      '2.x.0',
      '20.0.0',
      '1.0.0',
      '0.0.4',
      'v2.0.0',
      '',
    ])
      expect(
        caught(() => parseThread(good.replace('2.0.0', version))),
        version,
      ).toMatchObject({ code: 'UNSUPPORTED_VERSION', version, document: { version } })
    for (const source of [
      '5',
      '[]',
      'null',
      good.replace('"2.0.0"', '2'),
      good.replace('"version":"2.0.0",', ''),
    ])
      expect(
        caught(() => parseThread(source)),
        source,
      ).toBeInstanceOf(InvalidThreadError)
    // A thread of a later 2.x that is broken is broken, not of another version.
    const later = good.replace('"2.0.0"', '"2.7.1"').replace('"turn_type":"user",', '')
    expect(caught(() => parseThread(later))).toBeInstanceOf(InvalidThreadError)
  })

  test('TP-01 of text that is no JSON: the issue and no document; a limit is still an error', () => {
    const reading = safeParseThread('{')
    expect(reading).toEqual({
      ok: false,
      document: undefined,
      issues: [
        {
          code: 'invalid_json',
          severity: 'error',
          pointer: '',
          message: expect.any(String) as string,
        },
      ],
    })
    const limits = { maxTurns: 0 }
    expect(caught(() => safeParseThread(good, { limits }))).toBeInstanceOf(ThreadLimitError)
    const fine = safeParseThread(good)
    expect(fine).toMatchObject({ ok: true, issues: [] })
    const bad = safeParseThread(good.replace('"parts"', '"pieces"'))
    expect(bad).toMatchObject({ ok: false, document: { version: '2.0.0' } })
    expect(bad.issues.map(({ code }) => code)).toContain('missing_field')
  })

  test('TP-52 of a key that stands twice, before the other issues, with its severity in each profile', () => {
    const twice = good
      .replace('"version"', '"x":1,"x":2,"version"')
      .replace('"turn_type":"user"', '"turn_type":"pause"')
    const { issues, ok } = safeParseThread(twice)
    expect(ok).toBe(true)
    expect(issues.map(({ code, pointer }) => [code, pointer])).toEqual([
      ['duplicate_key', '/x'],
      ['unknown_turn_type', '/turns/0/turn_type'],
    ])
    expect(issues[0]?.message).toBe('/x: the key occurs twice; the last value was taken')
    const strict = safeParseThread(good.replace('"version"', '"x":1,"x":2,"version"'), {
      profile: 'strict',
    })
    expect(strict).toMatchObject({
      ok: false,
      issues: [{ code: 'duplicate_key', severity: 'error' }],
    })
    const broken = twice.replace('"turns":', '"spins":')
    expect(safeParseThread(broken).ok).toBe(false)
  })

  test('TP-08 of fragments: the same limits and profiles', () => {
    const { turns } = JSON.parse(good) as { turns: unknown[] }
    const list = JSON.stringify(turns)
    expect(parseFragment(list)).toEqual(turns)
    expect(parseFragment(`{"turns":${list}}`)).toEqual(turns)
    for (const limits of [{ maxTurns: 0 }, { maxLength: 5 }, { maxDepth: 1 }])
      expect(caught(() => parseFragment(list, { limits }))).toBeInstanceOf(ThreadLimitError)
    const orphan = JSON.stringify([
      agentTurn('ada', [
        {
          ...response('ada', 1, text('x')),
          message_type: 'request',
          parts: [
            {
              part_kind: 'tool-return',
              tool_name: 'x',
              tool_call_id: 'none',
              status: 'success',
              content: 1,
            },
          ],
        } as never,
      ]),
    ])
    expect(parseFragment(orphan)).toHaveLength(1)
    expect(caught(() => parseFragment(orphan, { profile: 'strict' }))).toBeInstanceOf(
      InvalidThreadError,
    )
    expect(caught(() => parseFragment('{"turns":5}'))).toBeInstanceOf(InvalidThreadError)
    expect(caught(() => parseFragment('5'))).toBeInstanceOf(InvalidThreadError)
  })
})
