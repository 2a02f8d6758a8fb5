import type { JsonValue } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from './arbitrary-message.ts'
import { contextOf, frame, requestOf } from './wire-cases.ts'
import { isUPPError } from '../../src/contract/error.ts'
import { chatDialect } from '../../src/wires/openai-chat/dialect.ts'
import { openaiChatServer } from '../../src/wires/openai-chat/server.ts'
import { openaiChat } from '../../src/wires/openai-chat/wire.ts'
import { responsesDialect } from '../../src/wires/openai-responses/types.ts'
import { openaiResponsesServer } from '../../src/wires/openai-responses/server.ts'
import { openaiResponses } from '../../src/wires/openai-responses/wire.ts'
import type { Wire } from '../../src/wires/wire.ts'
import type { WireServer } from '../../src/wires/wire-server.ts'

/** JSON of any shape, made of the words that the formats use, so that it gets past the first check. */
function nearly(words: readonly string[]): fc.Arbitrary<JsonValue> {
  const leaf = fc.oneof(
    fc.constantFrom(...words),
    fc.constantFrom(null, true, 0, 1, -1, 1e9, '', 'data:image/png;base64,!!', '{"a":'),
    fc.string({ maxLength: 4 }),
  )
  const { tree } = fc.letrec<{ tree: JsonValue }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 5 },
      leaf as fc.Arbitrary<JsonValue>,
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...words, '__proto__', 'constructor'), tie('tree'), {
        maxKeys: 5,
        noNullPrototype: true,
      }),
    ),
  }))
  return tree
}

const chatWords =
  'id model choices delta message index content text type thinking refusal reasoning reasoning_details tool_calls function custom name arguments input audio data transcript images image_url url finish_reason stop length usage prompt_tokens error code x_groq logprobs messages role user assistant system tool tool_call_id input_audio format file file_data'
const responsesWords =
  'type response response.created response.output_item.added response.output_item.done response.output_text.delta response.content_part.added response.function_call_arguments.delta response.image_generation_call.partial_image response.audio.delta response.completed response.failed item message reasoning function_call custom_tool_call image_generation_call web_search_call output_index content_index delta output content summary text id call_id name arguments input result status completed error code usage role user assistant function_call_output input_text input_image image_url'

interface Case {
  readonly wire: Wire
  readonly server: WireServer
  readonly dialect: unknown
  readonly words: string[]
}
const cases: [string, Case][] = [
  [
    'openai-chat',
    {
      wire: openaiChat,
      server: openaiChatServer,
      dialect: chatDialect,
      words: chatWords.split(' '),
    },
  ],
  [
    'openai-responses',
    {
      wire: openaiResponses,
      server: openaiResponsesServer,
      dialect: responsesDialect,
      words: responsesWords.split(' '),
    },
  ],
]

/** Runs; whatever is thrown is ours. */
function onlyOurErrors(run: () => unknown, code: string): void {
  try {
    run()
  } catch (error) {
    expect(isUPPError(error), String(error)).toBe(true)
    if (code) expect(error).toMatchObject({ code })
  }
}

const many = { ...runs, numRuns: runs.numRuns * 10 }

describe.each(cases)(
  '%s: malformed input gives typed errors',
  (_, { wire, server, dialect, words }) => {
    const target = { provider: 'p', modelId: 'm', dialect }

    test('in a stream', () => {
      fc.assert(
        fc.property(fc.array(nearly(words), { maxLength: 5 }), (frames) => {
          const decoder = wire.createDecoder(contextOf(target))
          onlyOurErrors(() => {
            for (const data of frames) decoder.push(frame(data))
            decoder.end()
          }, '')
        }),
        many,
      )
    })

    test('in a whole answer', () => {
      const request = requestOf({ structure: { type: 'array' } })
      fc.assert(
        fc.property(nearly(words), (body) => {
          onlyOurErrors(() => wire.decodeResponse(body, contextOf(target, request, wire)), '')
          onlyOurErrors(
            () =>
              wire.decodeError(
                { status: 400, headers: new Headers(), json: body, text: '' },
                target,
              ),
            'none is thrown',
          )
        }),
        many,
      )
      expect(Object.keys(Object.prototype)).toEqual([])
    })

    test('in a request to the server half', () => {
      fc.assert(
        fc.property(nearly(words), nearly(words), (list, body) => {
          const given = { model: 'm', messages: list, input: list, tools: body, text: body }
          onlyOurErrors(
            () => server.decodeRequest(given, { path: '', search: '' }),
            'INVALID_REQUEST',
          )
          onlyOurErrors(
            () => server.decodeRequest(body, { path: '', search: '' }),
            'INVALID_REQUEST',
          )
        }),
        many,
      )
    })
  },
)
