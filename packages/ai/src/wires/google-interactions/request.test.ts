import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { requestOf } from '../../../test/wires/wire-cases.ts'
import { AssistantMessage, type Message, UserMessage } from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import { googleInteractions } from './wire.ts'

const target = { provider: 'google', modelId: 'models/gemini-x', dialect: {} }

function encoded(fields: Partial<LLMRequest>, mode: 'complete' | 'stream' = 'complete') {
  const { body, path, warnings } = googleInteractions.encodeRequest(requestOf(fields), target, mode)
  return { body: JSON.parse(body) as JsonObject, path, warnings }
}

const answer = (metadata: JsonObject): Message =>
  new AssistantMessage('So far', [], { metadata: { google: { api: 'google-interactions', ...metadata } } }) // prettier-ignore

describe('a request', () => {
  test('has the whole conversation and no state of the vendor', () => {
    const messages = [new UserMessage('Hi'), answer({ id: 'v1_abc' }), new UserMessage('And?')]
    const { body, path } = encoded({ messages })
    expect(path).toBe('/interactions')
    expect(body).toEqual({
      model: 'gemini-x',
      input: [
        { type: 'user_input', content: [{ type: 'text', text: 'Hi' }] },
        { type: 'model_output', content: [{ type: 'text', text: 'So far' }] },
        { type: 'user_input', content: [{ type: 'text', text: 'And?' }] },
      ],
    })
  })

  test('names the previous interaction if the caller does', () => {
    const { body } = encoded({ params: { previous_interaction_id: 'v1', store: true } })
    expect(body).toMatchObject({ previous_interaction_id: 'v1', store: true })
  })

  test('asks an agent instead of the model', () => {
    const { body } = encoded({ params: { agent: 'deep-research' } }, 'stream')
    expect(body).toMatchObject({ agent: 'deep-research', stream: true })
    expect(body).not.toHaveProperty('model')
  })

  test('continues an answer with its token, without what was produced', () => {
    const messages = [new UserMessage('Hi'), answer({ continuation_token: 't1' })]
    const { body } = encoded({ messages })
    expect(body).toMatchObject({ continuation_token: 't1', input: [{ type: 'user_input' }] })
  })

  test('puts parameters of the generation where the API reads them; those of the caller win', () => {
    const params = { top_p: 0.5, seed: 1, generation_config: { seed: 2 }, labels: { a: 'b' } }
    expect(encoded({ params }).body).toMatchObject({
      generation_config: { top_p: 0.5, seed: 2 },
      labels: { a: 'b' },
    })
  })

  test('has both system prompts', () => {
    const { body } = encoded({ system: 'One.', params: { system_instruction: 'Two.' } })
    expect(body['system_instruction']).toBe('One.\n\nTwo.')
  })

  test('warns of a parameter that replaces the conversation', () => {
    const { body, warnings } = encoded({ params: { input: 'mine' } })
    expect(body['input']).toBe('mine')
    expect(warnings).toMatchObject([{ code: 'field_replaced', pointer: '/params/input' }])
  })

  test('refuses a function that is declared twice', () => {
    const tool = { name: 'f', description: '', parameters: {}, run: () => 1 }
    const native = [{ type: 'function', name: 'f' }]
    expect(() => encoded({ tools: [tool], params: { tools: native } })).toThrow(/"f" is in both/)
  })

  test.each([
    ['a list', [1, 2], '[1,2]'],
    ['a number', 42, '42'],
    ['nothing', undefined, ''],
    ['an object', { a: 1 }, { a: 1 }],
    ['content', [{ type: 'text', text: 'x' }], [{ type: 'text', text: 'x' }]],
  ])('writes a result that is %s', async (_, result, written) => {
    const { ToolResultMessage } = await import('../../contract/message.ts')
    const messages = [
      new UserMessage('Hi'),
      new AssistantMessage('', [{ toolCallId: 'c', toolName: 'f', arguments: {} }]),
      new ToolResultMessage([{ toolCallId: 'c', result }]),
    ]
    const [, , last] = encoded({ messages }).body['input'] as JsonObject[]
    expect(last).toEqual({ type: 'function_result', call_id: 'c', result: written })
  })
})
