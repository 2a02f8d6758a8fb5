/** An estimate of the application decides alone: the library adds none of its own (UAP §6.2). */
import { AgentState, type Middleware } from '@skein/agents'
import { pruneToolOutputs, slidingWindow, summarize } from '@skein/agents/middleware'
import { scriptedAgent } from '@skein/agents/testing'
import { AssistantMessage, ToolResultMessage, UserMessage, type Message } from '@skein/ai'
import { says } from '@skein/ai/testing'
import { expect, test } from 'vitest'

/** Three questions with a call each, whose results are long by the library's own estimate. */
const messages: readonly Message[] = Array.from({ length: 3 }, (_, index) => [
  new UserMessage(`question ${index}`),
  new AssistantMessage('', [{ toolCallId: `c${index}`, toolName: 'read', arguments: {} }]),
  new ToolResultMessage([{ toolCallId: `c${index}`, toolName: 'read', result: 'x'.repeat(5000) }]),
  new AssistantMessage(`answer ${index}`),
]).flat()

async function sent(middleware: Middleware): Promise<readonly Message[]> {
  const coder = scriptedAgent([says('done')], { middleware: [middleware] })
  await coder.generate('now', AgentState.initial().withMessages(messages))
  return coder.model.requests[0]!.messages.slice(0, -1)
}

test('UAP-091 pruneToolOutputs clears what is older than the protected tokens, counted by the estimate', async () => {
  const whole = { contextLimit: 5, outputReserve: 0, placeholder: 'cleared' }
  for (let protectRecent = 0; protectRecent <= messages.length; protectRecent++) {
    const prune = pruneToolOutputs({ ...whole, protectRecent, estimate: () => 1 })
    const expected = messages.map((message, index) => {
      const isOld = messages.length - index > protectRecent
      if (!isOld || message.type !== 'tool_result') return message
      const results = message.results.map((one) => ({ ...one, result: 'cleared' }))
      return new ToolResultMessage(results, { ...message })
    })
    expect(await sent(prune), `${protectRecent}`).toEqual(expected)
  }
})

test('UAP-091 messages that the estimate counts as nothing are all sent, and a long one is left out', async () => {
  const nothing = { estimate: () => 0 }
  const unused = { generate: () => Promise.reject(new Error('no model is asked')) }
  const all = [
    pruneToolOutputs({ contextLimit: 1, outputReserve: 0, protectRecent: 0, ...nothing }),
    slidingWindow(50, { maxTokens: 1, ...nothing }),
    summarize(unused, { threshold: 1, keepRecent: 1, ...nothing }),
  ]
  for (const middleware of all) expect(await sent(middleware)).toEqual(messages)
  const estimate = (message: Message): number => (message === messages[3] ? 1000 : 1)
  expect(await sent(slidingWindow(50, { maxTokens: 100, estimate }))).toEqual(messages.slice(4))
})
