import { expect, test } from 'vitest'
import { isToolResultMessage, type Message, type Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { agent, AgentState } from '../index.ts'

const whole = `HEAD ${'x'.repeat(1_000_000)} TAIL`
const read: Tool = {
  name: 'read',
  description: 'Reads.',
  parameters: { type: 'object' },
  run: () => whole,
}

function shown(messages: readonly Message[]): string {
  return String(messages.find(isToolResultMessage)?.results[0]?.result)
}

test('a large result: the model and the state have its head and tail, toolExecutions the whole', async () => {
  for (const [config, most] of [
    [undefined, 256 * 1024],
    [{ maxToolResultBytes: 1000 }, 1000],
  ] as const) {
    const model = scripted([calls('read', {}), says('done')])
    const { turn, state } = await agent({ model, tools: [read], config }).generate(
      'go',
      AgentState.initial(),
    )
    const text = shown(model.requests[1]!.messages)
    expect(text.length).toBeLessThanOrEqual(most)
    expect(text).toMatch(
      /^HEAD x+\n\n\[\d+ of 1000010 bytes of this result are left out here\.\]\n\nx+ TAIL$/,
    )
    expect(shown(state.messages)).toBe(text)
    expect(turn.toolExecutions[0]?.result).toBe(whole)
  }
})
