import fc from 'fast-check'
import type { JsonObject } from '@skein/base'
import type { AssistantContent, UserContent } from '../../src/contract/content.ts'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../../src/contract/message.ts'

/** Runs in CI; `SKEIN_DEEP` raises the count. */
export const runs: { readonly seed: number; readonly numRuns: number } = {
  seed: 20261115,
  numRuns: process.env['SKEIN_DEEP'] ? 3000 : 150,
}

export const text: fc.Arbitrary<string> = fc.string({ unit: 'grapheme', maxLength: 20 })
export const someText: fc.Arbitrary<string> = fc.string({
  unit: 'grapheme',
  minLength: 1,
  maxLength: 20,
})
export const name: fc.Arbitrary<string> = fc.stringMatching(/^[a-z][a-z0-9_]{0,11}$/)

const key = fc.stringMatching(/^[a-z]{1,6}$/)
export const jsonObject: fc.Arbitrary<JsonObject> = fc
  .dictionary(key, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4, noNullPrototype: true })
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject)

const base64 = fc
  .uint8Array({ minLength: 1, maxLength: 8 })
  .map((b) => Buffer.from(b).toString('base64'))

const userBlock: fc.Arbitrary<UserContent> = fc.oneof(
  text.map((value): UserContent => ({ type: 'text', text: value })),
  base64.map((data): UserContent => ({
    type: 'image',
    source: { type: 'base64', data },
    mimeType: 'image/png',
  })),
  base64.map((data): UserContent => ({
    type: 'document',
    source: { type: 'base64', data },
    mimeType: 'application/pdf',
    title: 'a.pdf',
  })),
)

const user = fc
  .oneof(
    text.map((value) => [{ type: 'text', text: value } as const]),
    fc.array(userBlock, { minLength: 1, maxLength: 3 }),
  )
  .map((content) => new UserMessage(content))

interface Round {
  readonly content: readonly AssistantContent[]
  readonly calls: readonly { name: string; args: JsonObject; result: string }[]
}

/** What every wire can say: at most one text, then calls, each answered with text. */
const round: fc.Arbitrary<Round> = fc.record({
  content: fc
    .option(someText, { nil: undefined })
    .map((value) => (value === undefined ? [] : [{ type: 'text' as const, text: value }])),
  calls: fc.array(fc.record({ name, args: jsonObject, result: someText }), { maxLength: 3 }),
})

/** A conversation that is whole: user, then answers with their tool results. */
export const conversation: fc.Arbitrary<readonly Message[]> = fc
  .array(fc.tuple(user, round), { minLength: 1, maxLength: 3 })
  .map((turns) => {
    let id = 0
    return turns.flatMap(([question, { content, calls }]): Message[] => {
      const ids = calls.map(() => `call_${id++}`)
      const answer = new AssistantMessage(
        content.length === 0 && calls.length === 0 ? 'ok' : content,
        calls.length === 0
          ? undefined
          : calls.map((call, i) => ({
              toolCallId: ids[i]!,
              toolName: call.name,
              arguments: call.args,
            })),
      )
      if (calls.length === 0) return [question, answer]
      const results = calls.map((call, i) => ({
        toolCallId: ids[i]!,
        toolName: call.name,
        result: call.result,
      }))
      return [question, answer, new ToolResultMessage(results)]
    })
  })

/** Messages without the id and time that each copy gets anew. */
export function plain(messages: readonly Message[]): unknown {
  return messages.map((message) => {
    if (message.type === 'tool_result') return { type: message.type, results: message.results }
    if (message.type === 'user') return { type: message.type, content: message.content }
    const { type, content, toolCalls } = message
    return { type, content, ...(toolCalls && { toolCalls }) }
  })
}
