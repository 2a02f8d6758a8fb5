/** Random threads for properties: one agent, as every bridge can hold, with every kind of part and unknown fields. */
import fc from 'fast-check'
import type { AgentTurn, Thread, ThreadMessage, UserTurn } from '../src/document/thread.ts'
import type { MessagePart } from '../src/document/part.ts'

const word = fc.string({ unit: 'grapheme', maxLength: 12 })
const name = fc.stringMatching(/^[a-z]{1,8}$/)
const json = fc
  .jsonValue({ maxDepth: 2 })
  .filter((value) => !JSON.stringify(value).includes('__proto__'))
const argumentsObject = fc.dictionary(name, json, { maxKeys: 3 })
const unknownFields = fc.option(
  name.map((key) => ({ [`x_${key}`]: 'unknown' })),
  { nil: {}, freq: 4 },
)

const media = fc.oneof(
  fc.record({
    kind: fc.constantFrom('image-url', 'document-url', 'audio-url'),
    url: fc.webUrl(),
    identifier: name,
  }),
  fc.record({
    kind: fc.constant('binary'),
    data: fc.constantFrom('AAAA', 'aGk_', '+/8='),
    media_type: fc.constantFrom('image/png', 'audio/wav', 'application/pdf'),
    identifier: name,
  }),
  fc.record({ kind: fc.constant('text-content'), content: word, metadata: json }),
  fc.record({
    kind: fc.constant('uploaded-file'),
    file_id: name,
    provider_name: fc.constantFrom('openai', 'anthropic'),
  }),
  fc.record({ kind: fc.constant('cache-point'), ttl: fc.constant('5m') }),
)

const prompt = fc
  .record({
    part_kind: fc.constant('user-prompt'),
    content: fc.oneof(
      word,
      // A word first, so that no bridge is left with nothing to say.
      fc
        .tuple(word, fc.array(fc.oneof(word, media), { maxLength: 3 }))
        .map(([first, more]) => [first, ...more]),
    ),
    more: unknownFields,
  })
  .map(({ more, ...part }) => ({ ...part, ...more }) as unknown as MessagePart)

const thinking = fc
  .record({
    part_kind: fc.constant('thinking'),
    content: word,
    signature: fc.option(name),
    provider_name: fc.constantFrom(null, 'anthropic', 'openai'),
    more: unknownFields,
  })
  .map(({ more, ...part }) => ({ ...part, ...more }) as unknown as MessagePart)

const said = fc
  .record({ part_kind: fc.constant('text'), content: word, more: unknownFields })
  .map(({ more, ...part }) => ({ ...part, ...more }) as unknown as MessagePart)

const args = fc.oneof(
  argumentsObject,
  argumentsObject.map((value) => JSON.stringify(value)),
  fc.constant(null),
  fc.constant('{"broken'),
)

interface Exchange {
  readonly text: MessagePart
  readonly thinking: MessagePart | null
  readonly calls: readonly {
    name: string
    args: unknown
    kind: string
    content: unknown
    more: object
  }[]
}

const exchange: fc.Arbitrary<Exchange> = fc.record({
  text: said,
  thinking: fc.option(thinking),
  calls: fc.array(
    fc.record({
      name,
      args,
      kind: fc.constantFrom(
        'success',
        'error',
        'validation_error',
        'denied',
        'interrupted',
        'retry',
      ),
      content: fc.oneof(word, json),
      more: unknownFields,
    }),
    { minLength: 1, maxLength: 3 },
  ),
})

const time = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString()

/** A thread of alternating user and agent turns; every response but the last of a turn is followed by its results. */
export const arbitraryThread: fc.Arbitrary<Thread> = fc
  .array(fc.record({ prompt, exchanges: fc.array(exchange, { maxLength: 2 }), last: said }), {
    maxLength: 3,
  })
  .map((rounds) => {
    let [clock, ids] = [0, 0]
    const turns = rounds.flatMap((round): [UserTurn, AgentTurn] => {
      const user: UserTurn = {
        turn_type: 'user',
        submitted_at: time(clock++),
        parts: [round.prompt],
      }
      const started_at = time(clock)
      const messages = round.exchanges.flatMap((entry) => {
        const keyed = entry.calls.map((call) => ({ ...call, id: `call-${ids++}` }))
        return [
          message('response', time(clock++), [
            ...(entry.thinking ? [entry.thinking] : []),
            entry.text,
            ...keyed.map((call) => callPart(call)),
          ]),
          message(
            'request',
            time(clock++),
            keyed.map((call) => answerPart(call)),
          ),
        ]
      })
      messages.push(message('response', time(clock++), [round.last]))
      return [
        user,
        {
          turn_type: 'agent',
          agent_id: 'ada',
          started_at,
          completed_at: time(clock - 1),
          messages,
        },
      ]
    })
    return {
      version: '2.0.0',
      thread_id: 'thread-1',
      created_at: time(0),
      updated_at: time(clock),
      agents: { ada: { agent_id: 'ada', agent_name: 'Ada', created_at: time(0) } },
      turns,
    }
  })

function message(
  message_type: 'request' | 'response',
  timestamp: string,
  parts: readonly MessagePart[],
): ThreadMessage {
  return { message_type, timestamp, agent_id: 'ada', parts }
}

type Call = Exchange['calls'][number] & { readonly id: string }

function callPart(call: Call): MessagePart {
  return {
    part_kind: 'tool-call',
    tool_name: call.name,
    tool_call_id: call.id,
    args: call.args,
    ...call.more,
  }
}

function answerPart({ id, name: tool_name, kind, content, more }: Call): MessagePart {
  const ids = { tool_name, tool_call_id: id }
  if (kind === 'retry') {
    const problems =
      typeof content === 'string'
        ? content
        : [{ type: 'missing', loc: ['a'], msg: 'Field required' }]
    return { part_kind: 'retry-prompt', content: problems, ...ids, ...more }
  }
  const outcome = kind === 'denied' || kind === 'interrupted' ? { outcome: kind } : {}
  const status = kind === 'denied' || kind === 'interrupted' ? 'error' : kind
  return { part_kind: 'tool-return', ...ids, status, content, ...outcome, ...more } as MessagePart
}
