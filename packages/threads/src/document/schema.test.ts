import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { seededRandom } from '@skein/base'
import { fullThread, oneOfEachKind } from '../../test/samples.ts'
import { STRUCTURAL_CODES } from './issue-code.ts'
import { validateThread } from '../index.ts'
import { threadSchema } from './schema.ts'
import { TIMESTAMP_PATTERN, instantOf } from './timestamp.ts'

const accepts = new Ajv2020({ strict: false, validateFormats: false }).compile(threadSchema)

function hasStructure(document: unknown): boolean {
  return !validateThread(document).issues.some(
    ({ code, severity }) => severity === 'error' && STRUCTURAL_CODES.has(code),
  )
}

/** What a place is set to: wrong types, empty things, near misses, and values that belong elsewhere. */
const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  1.5,
  '',
  'x',
  [],
  {},
  [[]],
  [{}],
  ['x'],
  [1],
  { kind: 'binary' },
  '2.0.0',
  '2.1.0',
  '2.0',
  '3.0.0',
  '2026-03-01T09:00:00Z',
  '2026-02-30T09:00:00Z',
  '2026-03-01T09:00:00',
  'user',
  'agent',
  'request',
  'response',
  'system',
  'robot',
  'stop',
  'tool-calls',
  'success',
  'denied',
  'text',
  'thinking',
  'tool-call',
  'tool-return',
  'retry-prompt',
  'file',
  'user-prompt',
  'speech',
  'compaction',
  'builtin-tool-call',
  'builtin-tool-return',
  'system-prompt',
  'tool-availability-delta',
  'hologram',
  'image-url',
  'binary',
  'text-content',
  'uploaded-file',
  'cache-point',
  'allow-local',
  'assistant',
  'AA==',
  'AA=',
  'A',
  '-_',
  '+/',
  '*',
]

const FIELDS = [
  'version',
  'title',
  'metadata',
  'agent_id',
  'agent_name',
  'created_at',
  'config_ref',
  'turn_type',
  'parts',
  'message_type',
  'timestamp',
  'part_kind',
  'content',
  'kind',
  'url',
  'identifier',
  'data',
  'media_type',
  'id',
  'tool_name',
  'tool_call_id',
  'args',
  'status',
  'signature',
  'thinking_id',
  'provider_name',
  'model_name',
  'provider_response_id',
  'usage',
  'total_usage',
  'finish_reason',
  'input_tokens',
  'total_tokens',
  'force_download',
  'event_type',
  'event_data',
  'source_agent',
  'target_agents',
  'speaker',
  'transcript',
  'file_id',
  'loc',
  'msg',
  'type',
]

test(
  'TP-16 the JSON Schema and the validator judge the structure of mutated documents alike',
  { timeout: 300_000 },
  () => {
    const random = seededRandom(20_26)
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!
    const count = process.env['SKEIN_DEEP'] ? 100_000 : 4_000
    const source = JSON.stringify(fullThread())
    let rejected = 0
    for (let run = 0; run < count; run++) {
      const document = JSON.parse(source) as object
      for (let change = 0; change <= random() * 3; change++) mutate(document, random, pick)
      const bySchema = accepts(document)
      if (!bySchema) rejected++
      if (hasStructure(document) !== bySchema) {
        expect.fail(
          `${JSON.stringify(document)}\nschema ${bySchema}: ${JSON.stringify(accepts.errors)}\n${JSON.stringify(validateThread(document).issues)}`,
        )
      }
    }
    // Both sides must have had work to do.
    expect(rejected).toBeGreaterThan(count / 4)
    expect(rejected).toBeLessThan((count * 19) / 20)
  },
)

function mutate(document: object, random: () => number, pick: <T>(from: readonly T[]) => T): void {
  const holders: object[] = []
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    holders.push(value)
    Object.values(value).forEach(collect)
  }
  collect(document)
  const holder = pick(holders) as Record<string, unknown>
  const keys = Object.keys(holder)
  const key =
    keys.length > 0 && random() < 0.7
      ? pick(keys)
      : Array.isArray(holder)
        ? String(keys.length)
        : pick(FIELDS)
  if (random() < 0.2 && !Array.isArray(holder)) delete holder[key]
  else holder[key] = structuredClone(pick(VALUES))
}

test('TP-16 one field of one object at a time: schema and validator agree, and name that place', () => {
  const values = [null, true, 0, '', 'x', 'failed', 'tool_calls', [], {}, ['x'], [null]]
  const kinds = ['turn_type', 'message_type', 'part_kind', 'kind']
  const others = [
    'timestamp',
    'submitted_at',
    'created_at',
    'id',
    'name',
    'content',
    'text',
    'type',
  ]
  let refused = 0
  for (const [index, document] of oneOfEachKind().entries()) {
    const judge = (pointer: string): void => {
      const bySchema = accepts(document)
      const errors = validateThread(document).issues.filter(({ code }) =>
        STRUCTURAL_CODES.has(code),
      )
      if ((errors.length === 0) !== bySchema) expect.fail(`${pointer}: the schema says ${bySchema}`)
      const elsewhere = errors.find((issue) => !issue.pointer.startsWith(pointer))
      if (elsewhere) expect.fail(`${pointer} is named ${elsewhere.pointer}`)
      if (!bySchema) refused++
    }
    for (const [pointer, object] of objectsIn(document)) {
      // From the third on, the documents differ only in their parts.
      if (index > 2 && !pointer.startsWith('/turns/0/parts')) continue
      for (const [key, before] of Object.entries(object)) {
        if (kinds.includes(key)) continue
        for (const value of values) {
          object[key] = value
          judge(`${pointer}/${key}`)
        }
        delete object[key]
        judge(`${pointer}/${key}`)
        // A value under the name of another field is missing all the same.
        for (const name of others.filter((other) => other !== key && !(other in object))) {
          object[name] = before
          judge(pointer)
          delete object[name]
        }
        object[key] = before
      }
    }
  }
  expect(refused).toBeGreaterThan(1000)
})

function objectsIn(value: unknown, pointer = ''): [string, Record<string, unknown>][] {
  if (typeof value !== 'object' || value === null) return []
  const below = Object.entries(value).flatMap(([key, item]) => objectsIn(item, `${pointer}/${key}`))
  return Array.isArray(value) ? below : [[pointer, value as Record<string, unknown>], ...below]
}

test('TP-V1 the pattern of the schema and the parser accept the same timestamps', () => {
  const pattern = new RegExp(TIMESTAMP_PATTERN, 'u')
  const random = seededRandom(8601)
  const digits = (count: number, below: number): string =>
    String(Math.floor(random() * below)).padStart(count, '0')
  const seen = { valid: 0, invalid: 0 }
  for (let run = 0; run < 30_000; run++) {
    const zone = ['Z', '', '+02:00', '-0330', '+05', '+24:00', '+1', 'z', '+02:60', 'ZZ'][
      Math.floor(random() * 10)
    ]!
    const fraction = ['', '', '.5', ',25', '.', '.1234567', '.12x'][Math.floor(random() * 7)]!
    const seconds = random() < 0.1 ? '' : `:${digits(2, 63)}${fraction}`
    let text = `${digits(4, 10_000)}-${digits(2, 14)}-${digits(2, 33)}T${digits(2, 25)}:${digits(2, 62)}${seconds}${zone}`
    if (random() < 0.05) text = text.replace(/[-T:]/, ' ')
    const valid = !Number.isNaN(instantOf(text))
    if (valid !== pattern.test(text)) expect.fail(text)
    seen[valid ? 'valid' : 'invalid']++
  }
  expect(seen.valid).toBeGreaterThan(5_000)
  expect(seen.invalid).toBeGreaterThan(5_000)
})

test('TP-V1 a date is judged by itself, whatever date was read before it', () => {
  const pattern = new RegExp(TIMESTAMP_PATTERN, 'u')
  const two = (value: number): string => String(value).padStart(2, '0')
  for (const day of ['2025-01-01', '2025-02-28', '2024-12-31', '0000-01-01']) {
    const good = `${day}T10:00:00Z`
    const instant = instantOf(good)
    expect(instant).not.toBeNaN()
    for (let month = 0; month < 100; month++) {
      for (let date = 0; date < 100; date++) {
        const other = `${day.slice(0, 4)}-${two(month)}-${two(date)}T10:00:00Z`
        const isValid = !Number.isNaN(instantOf(other))
        if (isValid !== pattern.test(other)) expect.fail(`${other} after ${good}`)
        if (instantOf(good) !== instant) expect.fail(`${good} after ${other}`)
      }
    }
  }
})

test('instants agree with Date where Date can tell', () => {
  const random = seededRandom(1970)
  for (let run = 0; run < 3_000; run++) {
    const date = new Date((random() * 2 - 0.5) * 4e12)
    if (date.getUTCFullYear() < 1) continue
    expect(instantOf(date.toISOString())).toBe(date.getTime() * 1000)
  }
})
