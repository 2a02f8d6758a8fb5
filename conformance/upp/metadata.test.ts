import type { JsonObject } from '@skein/base'
import { AssistantMessage, llm, NoRetry, UserMessage, type Message } from '@skein/ai'
import { google } from '@skein/ai/google'
import { openrouter } from '@skein/ai/openrouter'
import { describe, expect, test } from 'vitest'
import { weather } from './cases/requests.ts'
import { answering, askVendor, bodyOf, ways } from './support/ask-vendor.ts'
import type { VendorCase } from './cases/vendor-case.ts'
import { vendorCases } from './vendors.ts'

/** Everything that carries metadata in a message. */
function metadataOf(message: Message): readonly (Readonly<Record<string, unknown>> | undefined)[] {
  if (message.type !== 'assistant') return [message.metadata]
  const { metadata, content, toolCalls = [] } = message
  return [metadata, ...[...content, ...toolCalls].map((part) => part.metadata)]
}

const manual = { toolStrategy: { maxIterations: 0 } }

describe.each(ways)('through %s', (way) => {
  test.each(vendorCases)(
    'UPP-061 UPP-156 $name: vendor data is under the name of the provider, and nowhere else',
    async (vendor) => {
      const { turn } = await askVendor(vendor, 'tools', {
        way,
        answers: vendor.unknown,
        options: manual,
      })
      expect(turn.response.metadata?.[vendor.provider]).toMatchObject(vendor.unknown.metadata)
      for (const metadata of metadataOf(turn.response)) {
        expect(Object.keys(metadata ?? {}).filter((key) => key !== vendor.provider)).toEqual([])
      }
    },
  )
})

/** Asks, then asks again with the answer as history; gives the second body. */
async function askAgain(
  vendor: VendorCase,
  change: (messages: readonly Message[]) => readonly Message[],
): Promise<JsonObject> {
  const { fetch, seen } = answering([vendor.unknown, vendor.answers.text])
  const config = { apiKey: 'key', fetch, retryStrategy: new NoRetry() }
  const model = llm({ model: vendor.model, config, tools: [weather], ...manual })
  const first = await model.generate('Hello')
  await model.generate(change(first.messages), 'Continue')
  return bodyOf(seen[1])
}

describe('round trips', () => {
  const replaying = vendorCases.filter(({ unknown }) => unknown.sentBack)

  test.each(replaying)(
    'UPP-062 UPP-157 $name: fields no one knows come back to the vendor',
    async (vendor) => {
      const { of, value } = vendor.unknown.sentBack!
      expect(of(await askAgain(vendor, (messages) => messages))).toEqual(value)
    },
  )

  test.each(replaying)(
    'UPP-062 UPP-157 $name: and survive being stored as JSON',
    async (vendor) => {
      const { of, value } = vendor.unknown.sentBack!
      // Plain data instead of instances, as it comes out of a database.
      const stored = (messages: readonly Message[]): readonly Message[] =>
        JSON.parse(JSON.stringify(messages)) as Message[]
      expect(of(await askAgain(vendor, stored))).toEqual(value)
    },
  )

  test.each(vendorCases)(
    'UPP-062 $name: foreign namespaces are neither sent nor lost',
    async (vendor) => {
      const foreign = { other: { api: 'other-api', native: { canary: 'sk-foreign' }, note: 1 } }
      const history = [
        new UserMessage([{ type: 'text', text: 'Hello', metadata: foreign }], {
          metadata: foreign,
        }),
        new AssistantMessage(
          [
            { type: 'reasoning', text: 'Hm', metadata: foreign },
            { type: 'text', text: 'Hi', metadata: foreign },
            { type: 'native', name: 'thing', metadata: foreign },
          ],
          undefined,
          { metadata: foreign },
        ),
      ]
      const before = JSON.stringify(history)
      const { fetch, seen } = answering(vendor.answers.text)
      const config = { apiKey: 'key', fetch, retryStrategy: new NoRetry() }
      await llm({ model: vendor.model, config }).generate(history, 'Continue')
      expect(seen[0]?.body).not.toContain('sk-foreign')
      expect(seen[0]?.body).not.toContain('"note"')
      expect(seen[0]?.body).not.toContain('Hm')
      expect(seen[0]?.body).toContain('Hi')
      expect(JSON.stringify(history)).toBe(before)
    },
  )
})

test('UPP-157 reasoning of the other API of the same vendor is left out with a warning', async () => {
  const bodies: string[] = []
  const fetch = async (_: string, init: RequestInit): Promise<Response> => {
    bodies.push(init.body as string)
    const thought = { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'hm' }] }
    const content = [{ type: 'output_text', text: 'Hi', annotations: [] }]
    const output = [thought, { type: 'message', id: 'm', role: 'assistant', content }]
    const choices = [{ message: { content: 'Yes' }, finish_reason: 'stop' }]
    return Response.json(
      bodies.length === 1 ? { id: 'x', status: 'completed', output } : { choices },
    )
  }
  const config = { apiKey: 'key-0123456789', fetch }
  const first = await llm({ model: openrouter('m', { api: 'responses' }), config }).generate('x')
  const chat = llm({ model: openrouter('m', { api: 'chat' }), config })
  const { warnings } = await chat.generate(first.messages, 'y')
  expect(first.response.content[0]).toMatchObject({ type: 'reasoning', text: 'hm' })
  expect(warnings.map(({ code }) => code)).toEqual(['foreign_reasoning_dropped'])
  const { messages } = JSON.parse(bodies[1]!) as { messages: object[] }
  expect(messages[1]).toEqual({ role: 'assistant', content: 'Hi' })
})

test.each([{ thoughtSignature: 's' }, {}])(
  'UPP-157 Google: unknown fields in a call and next to it (%j) are kept and sent back',
  async (siblings) => {
    const bodies: string[] = []
    const functionCall = { name: 'weather', args: {}, id: 'c1', x_inside: { a: 1 } }
    const parts = [{ functionCall, x_beside: [2], ...siblings }]
    const fetch = async (_: string, init: RequestInit): Promise<Response> => {
      bodies.push(init.body as string)
      return Response.json({ candidates: [{ content: { parts }, finishReason: 'STOP' }] })
    }
    const config = { apiKey: 'key-0123456789', fetch }
    const model = llm({ model: google('gemini-2.5-flash'), config, tools: [weather], ...manual })
    const { messages, response } = await model.generate('x')
    const native = { x_beside: [2], ...siblings, functionCall: { x_inside: { a: 1 } } }
    expect(response.toolCalls?.[0]?.metadata?.['google']?.['native']).toEqual(native)
    await model.generate(messages, 'y')
    const { contents } = JSON.parse(bodies[1]!) as { contents: { parts: object[] }[] }
    expect(contents[1]?.parts).toEqual(parts)
  },
)
