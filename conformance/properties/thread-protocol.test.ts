/**
 * Properties of ThreadProtocol 2.0.0: documents are generated from the specification's interfaces, spoilt in ways
 * that name what they violate, and judged twice, by `@skein/threads` and by the slow model in
 * `thread-grammar.ts`. What valid documents mean (views, pending calls, sums) is computed twice as well.
 *
 * Where the specification leaves a hole, the model reads it as the package documents: equal ends and starts of
 * turns are no overlap (its own example has them), ids are any text (its examples are no UUIDs), a thinking
 * part may lack its provider (its stream conversion makes such parts), and a return answers one earlier call
 * of the same tool, anywhere in the thread (a deferred call is answered in a later turn). A retry prompt that
 * names its tool answers a call too, though the specification's `getPendingToolCalls` looks at returns alone.
 *
 * With SKEIN_DEEP it tries twenty times as many cases.
 */
import {
  InvalidThreadError,
  parseThread,
  pendingToolCalls,
  stringifyThread,
  type Thread,
  threadStats,
  toModelMessages,
  UnsupportedVersionError,
  validateThread,
} from '@skein/threads'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { changedAt, type Json, type Mutation, type Path, runs, valueAt } from './support.ts'
import { brokenRules, grammar, readStructure, wrongsOf } from './thread-grammar.ts'

const word = fc.string({
  unit: fc.constantFrom('a', 'b', 'é', '漢', '{', '}', ' ', '"', '\\', '7'),
  maxLength: 8,
})
const name = fc.constantFrom('Ann', 'Bob', 'Weather Assistant', 'x-1')
const json = fc.jsonValue({ maxDepth: 2, noUnicodeString: true })
const tokens = fc.nat({ max: 5000 })
const opt = { requiredKeys: [] as [] }

/** A record whose named members are there and whose others may be. */
function shape(
  must: Record<string, fc.Arbitrary<unknown>>,
  may: Record<string, fc.Arbitrary<unknown>>,
) {
  return fc
    .tuple(fc.record(must), fc.record(may, opt))
    .map(([required, optional]): Json => ({ ...required, ...optional }))
}
const kind = (value: string) => fc.constant(value)

const usage = shape(
  {},
  { input_tokens: tokens, output_tokens: tokens, thinking_tokens: tokens, total_tokens: tokens },
)
const binary = shape(
  {
    kind: kind('binary'),
    data: fc.constantFrom('', 'AQ==', 'AQI=', 'AQID', 'aGk+/w=='),
    media_type: kind('image/png'),
    identifier: word,
  },
  { vendor_metadata: json },
)
const url = shape(
  {
    kind: fc.constantFrom('image-url', 'audio-url', 'video-url', 'document-url'),
    url: kind('https://example.com/a'),
    identifier: word,
  },
  { force_download: fc.boolean(), vendor_metadata: json, media_type: kind('image/png') },
)
const userPrompt = shape(
  {
    part_kind: kind('user-prompt'),
    content: fc.oneof(word, fc.array(fc.oneof(word, url, binary), { maxLength: 3 })),
  },
  {},
)
const said = fc.oneof(
  shape({ part_kind: kind('text'), content: word }, { id: word }),
  shape(
    { part_kind: kind('thinking'), provider_name: kind('acme') },
    { content: word, signature: word, thinking_id: word },
  ),
  shape({ part_kind: kind('file'), content: binary }, { id: word }),
)
const call = fc.record({
  tool_name: fc.constantFrom('add', 'look up'),
  args: fc.dictionary(fc.constantFrom('a', 'b'), json, { maxKeys: 2 }),
  status: fc.constantFrom('success', 'error', 'validation_error'),
  content: json,
  answered: fc.constantFrom('now', 'later', 'never', 'retried'),
})
const response = fc.record({
  said: fc.array(said, { maxLength: 3 }),
  calls: fc.array(call, { maxLength: 2 }),
  gap: fc.nat({ max: 2 }),
  fields: shape(
    {},
    {
      model_name: fc.constantFrom('m-1', 'm-2'),
      provider_name: kind('acme'),
      provider_response_id: word,
      usage,
      finish_reason: fc.constantFrom('stop', 'length', 'content_filter', 'tool_call', 'error'),
    },
  ),
  by: fc.nat(),
  event: fc.option(
    shape(
      { event_type: fc.constantFrom('agent.handoff', 'state.update', 'x.mine'), event_data: json },
      {},
    ),
    { nil: undefined },
  ),
})
const turn = fc.oneof(
  fc.record({
    user: fc.array(userPrompt, { minLength: 1, maxLength: 2 }),
    gap: fc.nat({ max: 2 }),
  }),
  fc.record({
    by: fc.nat(),
    gap: fc.nat({ max: 2 }),
    responses: fc.array(response, { maxLength: 3 }),
    total: fc.option(usage, { nil: undefined }),
  }),
)

/** Valid documents: calls have ids of their own, returns come after them, clocks never go back. */
const threads = fc
  .record({
    names: fc.array(name, { minLength: 1, maxLength: 3 }),
    turns: fc.array(turn, { maxLength: 4 }),
    zones: fc.infiniteStream(fc.constantFrom('Z', '.000Z', '+02:00', '-03:30')),
    extra: shape({}, { title: word, metadata: fc.dictionary(word, json, { maxKeys: 2 }) }),
  })
  .map(({ names, turns, zones, extra }) => {
    let second = 0
    const now = (gap = 0): string => stamp((second += gap), zones.next().value as string)
    const created_at = now()
    const ids = names.map((_, index) => `agent_00${index}`)
    const agents = Object.fromEntries(
      ids.map((agent_id, index) => [agent_id, { agent_id, agent_name: names[index], created_at }]),
    )
    let calls = 0
    let waiting: Json[] = []
    const written = turns.map((one): Json => {
      if ('user' in one) return { turn_type: 'user', submitted_at: now(one.gap), parts: one.user }
      const agent_id = ids[one.by % ids.length]!
      const started_at = now(one.gap)
      const messages: Json[] = []
      const answer = (parts: Json[]): void => {
        if (parts.length > 0)
          messages.push({ message_type: 'request', timestamp: now(1), parts, agent_id })
      }
      answer(waiting)
      waiting = []
      for (const step of one.responses) {
        const made = step.calls.map((made) => ({ ...made, tool_call_id: `call_${calls++}` }))
        messages.push({
          message_type: 'response',
          timestamp: now(step.gap),
          parts: [
            ...step.said,
            ...made.map(({ tool_name, tool_call_id, args }) => ({
              part_kind: 'tool-call',
              tool_name,
              tool_call_id,
              args,
            })),
          ],
          agent_id: ids[step.by % ids.length]!,
          ...step.fields,
        })
        const returned = (when: string): Json[] =>
          made
            .filter(({ answered }) => answered === when)
            .map(({ tool_name, tool_call_id, status, content }) => ({
              part_kind: 'tool-return',
              tool_name,
              tool_call_id,
              status,
              content,
            }))
        answer([
          ...returned('now'),
          ...made
            .filter(({ answered }) => answered === 'retried')
            .map(({ tool_name, tool_call_id }) => ({
              part_kind: 'retry-prompt',
              content: 'again',
              tool_name,
              tool_call_id,
            })),
        ])
        waiting.push(...returned('later'))
        if (step.event)
          messages.push({
            message_type: 'system',
            timestamp: now(),
            ...step.event,
            source_agent: agent_id,
          })
      }
      return {
        turn_type: 'agent',
        agent_id,
        started_at,
        completed_at: now(1),
        messages,
        ...(one.total && { total_usage: one.total }),
      }
    })
    return {
      version: '2.0.0',
      thread_id: '550e8400-e29b-41d4-a716-446655440000',
      created_at,
      updated_at: now(),
      ...extra,
      agents,
      turns: written,
    } as Json
  })

function stamp(second: number, zone: string): string {
  const minutes = zone === '+02:00' ? 120 : zone === '-03:30' ? -210 : 0
  const local = new Date(Date.UTC(2026, 1, 27, 22, 59, 30) + second * 1000 + minutes * 60_000)
  return local.toISOString().slice(0, 19) + zone
}

const WRONG_VALUES: readonly unknown[] = [7, true, ['x'], { x: 1 }, 'no such thing', null]
const WRONG_TIMES = [
  '2026-02-29T10:00:00Z',
  '2026-13-01T10:00:00Z',
  'yesterday',
  '2026-01-01T25:00:00Z',
]

/** One change of a valid document. What it does to validity is for the model to say. */
const mutation = fc.record({
  which: fc.constantFrom(
    'drop',
    'drop',
    'retype',
    'retype',
    'unknown field',
    'time',
    'clock',
    'agent',
    'call id',
    'duplicate',
    'system prompt',
    'version',
  ),
  node: fc.nat(),
  field: fc.nat(),
  value: fc.nat(),
})

function mutate(
  thread: Json,
  pick: { which: string; node: number; field: number; value: number },
): Mutation<Json> {
  const { nodes } = readStructure(thread)
  // The type first: otherwise the many text parts would leave little for the others.
  const types = [...new Set(nodes.map(({ type }) => type))]
  const alike = nodes.filter(({ type }) => type === types[pick.node % types.length])
  const node = alike[pick.value % alike.length]!
  const fields = Object.entries(grammar[node.type]!)
  const [key, field] = fields[pick.field % fields.length]!
  const at = (path: Path, change: (place: Json) => void, rule: string): Mutation<Json> => ({
    rule: `${rule} at ${path.join('/')}`,
    result: changedAt(thread, path, change),
  })
  const among = <T>(list: readonly T[]): T | undefined => list[pick.value % list.length]
  const places = (...keys: string[]): { path: Path; key: string }[] =>
    nodes.flatMap(({ path }) =>
      keys
        .filter((one) => Object.hasOwn(valueAt(thread, path) as Json, one))
        .map((one) => ({ path, key: one })),
    )
  const set = (keys: string[], value: unknown, rule: string): Mutation<Json> => {
    const place = places(...keys)[pick.node % places(...keys).length]
    return place === undefined
      ? { rule: 'nothing', result: thread }
      : at(place.path, (one) => (one[place.key] = value), `${rule} (${place.key})`)
  }
  switch (pick.which) {
    case 'drop':
      return at(node.path, (place) => delete place[key], `drop ${key}`)
    case 'retype': {
      // Null where a field is optional: Pydantic AI writes it, so the package reads it as absent.
      const wrong = WRONG_VALUES.filter((value) => value !== null || field.required)
      return at(node.path, (place) => (place[key] = among(wrong)), `retype ${key}`)
    }
    case 'unknown field':
      return at(node.path, (place) => (place['x_unknown'] = { kept: [1] }), 'unknown field')
    case 'time':
      return set(
        ['timestamp', 'started_at', 'submitted_at', 'created_at'],
        among(WRONG_TIMES),
        'rule 1',
      )
    case 'clock':
      return set(
        ['timestamp', 'started_at', 'completed_at', 'submitted_at'],
        stamp((pick.value % 40) - 10, 'Z'),
        'rules 4 and 5',
      )
    case 'agent':
      return set(['agent_id'], 'nobody', 'rule 3')
    case 'call id':
      return set(['tool_call_id'], `call_${pick.value % 4}`, 'rule 2')
    case 'duplicate': {
      const lists = places('parts', 'messages', 'turns')
      const { path, key: list } = lists[pick.node % lists.length]!
      return at(
        path,
        (place) => {
          const items = place[list] as unknown[]
          if (items.length > 0) items.push(structuredClone(among(items)))
        },
        `duplicate in ${list}`,
      )
    }
    case 'system prompt': {
      const prompt = { part_kind: 'system-prompt', content: 'Be brief.' }
      const lists = places('parts')
      if (lists.length === 0) return { rule: 'nothing', result: thread }
      return at(
        lists[pick.node % lists.length]!.path,
        (place) => (place['parts'] as Json[]).push(prompt),
        'stored prompt',
      )
    }
    default:
      return {
        rule: 'version',
        result: { ...thread, version: among(['1.0.0', '3.0.0', '2', '2.0.1']) },
      }
  }
}

test('a valid document is accepted, and its text comes back with unknown fields', () => {
  fc.assert(
    fc.property(threads, (thread) => {
      expect(wrongsOf(thread)).toEqual([])
      expect(validateThread(thread, { profile: 'strict' }).issues.filter(isError)).toEqual([])
      const text = JSON.stringify(thread)
      expect(stringifyThread(parseThread(text, { profile: 'strict' }))).toBe(text)
    }),
    runs(200),
  )
})

test('a spoilt document is refused exactly where the model refuses it', () => {
  const seen = new Map<string, number>()
  fc.assert(
    fc.property(threads, mutation, (thread, pick) => {
      const { rule, result } = mutate(thread, pick)
      const wrongs = wrongsOf(result)
      const label = `${pick.which} ${wrongs.length > 0 ? 'refused' : 'accepted'}`
      seen.set(label, (seen.get(label) ?? 0) + 1)
      const verdict = validateThread(result, { profile: 'strict' })
      const why = { rule, wrongs, found: verdict.issues.filter(isError) }
      expect(verdict.valid, JSON.stringify(why)).toBe(wrongs.length === 0)
      const read = (): Thread => parseThread(JSON.stringify(result), { profile: 'strict' })
      if (wrongs.length === 0) {
        expect(stringifyThread(read())).toBe(JSON.stringify(result))
        return
      }
      const error = caught(read)
      expect(error instanceof InvalidThreadError || error instanceof UnsupportedVersionError).toBe(
        true,
      )
      // A broken rule is no broken structure, and the other way round.
      if (verdict.issues.every(({ code }) => !CLOSED_LISTS.has(code)))
        expect(verdict.wellFormed, JSON.stringify(why)).toBe(isOnlyRules(result))
    }),
    runs(1500),
  )
  for (const which of [
    'drop',
    'retype',
    'time',
    'clock',
    'agent',
    'call id',
    'duplicate',
    'system prompt',
    'version',
  ])
    expect(seen.get(`${which} refused`), which).toBeGreaterThan(0)
  expect(seen.get('unknown field accepted')).toBeGreaterThan(0)
  expect(seen.get('unknown field refused')).toBeUndefined()
})

test('views, pending calls and sums are those that the specification writes down', () => {
  fc.assert(
    fc.property(threads, fc.nat(), (document, viewer) => {
      const thread = document as unknown as Thread
      const ids = Object.keys(thread.agents)
      const id = ids[viewer % ids.length]!
      expect(toModelMessages(thread, id, { foreignThinking: 'keep' })).toEqual(
        modelView(document, id),
      )
      expect(toModelMessages(thread, id)).toEqual(withoutForeignSignatures(document, id))
      expect(pendingToolCalls(thread)).toEqual(modelPending(document))
      const stats = threadStats(thread)
      const messages = modelMessages(document)
      const count = (type: string): number =>
        messages.filter((one) => one['message_type'] === type).length
      expect(stats.messages).toEqual({
        request: count('request'),
        response: count('response'),
        system: count('system'),
      })
      const used = messages
        .filter((one) => one['message_type'] === 'response')
        .map((one) => (one['usage'] ?? {}) as Json)
      for (const field of Object.keys(grammar['Usage']!)) {
        const sum = used.reduce((total, one) => total + Number(one[field] ?? 0), 0)
        expect((stats.usage.usage as Json)[field] ?? 0, field).toBe(sum)
      }
    }),
    runs(200),
  )
})

/** `toModelMessages` and `prefixAgentNameToParts` of the specification. */
function modelView(thread: Json, viewer: string): Json[] {
  const agents = thread['agents'] as Record<string, Json>
  const view: Json[] = []
  for (const turn of thread['turns'] as Json[]) {
    if (turn['turn_type'] === 'user') {
      view.push({ kind: 'request', parts: turn['parts'], timestamp: turn['submitted_at'] })
      continue
    }
    for (const { message_type, agent_id, parts, ...rest } of turn['messages'] as Json[]) {
      if (message_type === 'system') continue
      const label = `{agent:${String(agents[agent_id as string]!['agent_name'])}}: `
      const shown = (parts as Json[]).map((part) =>
        agent_id !== viewer && part['part_kind'] === 'text'
          ? { ...part, content: label + String(part['content']) }
          : part,
      )
      view.push({ kind: message_type, parts: shown, agent_id, ...rest }) // "other fields"
    }
  }
  return view
}

/**
 * The same view, but of the thinking of others only the text: a signature and ids are valid only for the provider and
 * the agent that made them. Thinking without text is left out, and so is a message of which nothing else is left.
 */
function withoutForeignSignatures(thread: Json, viewer: string): Json[] {
  return modelView(thread, viewer).flatMap((message) => {
    const parts = message['parts'] as Json[]
    if (message['agent_id'] === undefined || message['agent_id'] === viewer) return [message]
    const shown = parts.flatMap((part) => {
      if (part['part_kind'] !== 'thinking') return [part]
      const { signature: _, id: __, thinking_id: ___, provider_details: ____, ...rest } = part
      return part['content'] ? [rest] : []
    })
    return shown.length === 0 && parts.length > 0 ? [] : [{ ...message, parts: shown }]
  })
}

function modelMessages(thread: Json): Json[] {
  return (thread['turns'] as Json[]).flatMap((turn) => (turn['messages'] ?? []) as Json[])
}

/** `getPendingToolCalls` of the specification, over the whole thread. */
function modelPending(thread: Json): Json[] {
  const parts = modelMessages(thread).flatMap((message) => (message['parts'] ?? []) as Json[])
  const returned = new Set(
    parts
      .filter((part) => ['tool-return', 'retry-prompt'].includes(part['part_kind'] as string))
      .map((part) => part['tool_call_id']),
  )
  return parts.filter(
    (part) => part['part_kind'] === 'tool-call' && !returned.has(part['tool_call_id']),
  )
}

/** Unknown kinds and versions are structure to the model; the package reads them, and refuses them when strict. */
const CLOSED_LISTS: ReadonlySet<string> = new Set([
  'unknown_part_kind',
  'unknown_content_kind',
  'unknown_turn_type',
  'inline_system_prompt',
  'newer_version',
  'bad_timestamp',
  'bad_base64',
])

function isOnlyRules(thread: Json): boolean {
  return readStructure(thread).wrong.length === 0 && brokenRules(thread).length > 0
}

function isError({ severity }: { readonly severity: string }): boolean {
  return severity === 'error'
}

function caught(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  return undefined
}
