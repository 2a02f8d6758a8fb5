import { expect, test } from 'vitest'
import { requestOf } from '../../test/wires/wire-cases.ts'
import { AssistantMessage, ToolResultMessage, UserMessage } from '../contract/message.ts'
import { googleGenerate } from './google-generate/wire.ts'
import { ollamaChat } from './ollama-chat/wire.ts'
import type { Wire } from './wire.ts'

// The same results object, remembered once, in conversations that differ in the calls before it.
const call = (toolName: string, metadata?: object) =>
  new AssistantMessage('', [
    { toolCallId: 'c', toolName, arguments: {}, ...(metadata && { metadata: metadata as never }) },
  ])
const named = new ToolResultMessage([{ toolCallId: 'c', toolName: 'f', result: 'r' }])
const unnamed = new ToolResultMessage([{ toolCallId: 'c', result: 'r' }])

function sent(wire: Wire<never>, before: AssistantMessage, results: ToolResultMessage): string {
  const messages = [new UserMessage('Hi'), before, results]
  const target = { provider: 'p', modelId: 'm', dialect: {} as never }
  return wire.encodeRequest(requestOf({ messages }), target, 'complete').body
}

test('Google: by the name of the call, and without an id that the vendor never gave', () => {
  const generated = { p: { api: 'google-generate', generatedId: true } }
  for (const results of [named, unnamed]) {
    expect(sent(googleGenerate, call('f'), results)).toContain('{"id":"c","name":"f","response"')
    expect(sent(googleGenerate, call('g'), results)).toContain('{"id":"c","name":"g","response"')
    expect(sent(googleGenerate, call('f', generated), results)).toContain('{"name":"f","response"')
    expect(sent(googleGenerate, call('f'), results)).toContain('{"id":"c","name":"f","response"')
  }
})

test('Ollama: by the name of the call, and with the id that the server gave', () => {
  const given = { p: { api: 'ollama-chat', native: { id: 'c' } } }
  for (const results of [named, unnamed]) {
    expect(sent(ollamaChat, call('f'), results)).toContain('"tool_name":"f"}')
    expect(sent(ollamaChat, call('g'), results)).toContain('"tool_name":"g"}')
    expect(sent(ollamaChat, call('f', given), results)).toContain('"tool_call_id":"c"}')
    expect(sent(ollamaChat, call('f'), results)).not.toContain('tool_call_id')
  }
})
