/** The two inferences of each step of react: what they are sent, and what is kept of them. */
import { agent, AgentState } from '@skein/agents'
import { react } from '@skein/agents/execution'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { add } from './support/tools.ts'

const start = AgentState.initial()
const thought = 'First this.\n\nThen that.\n\n  Indented, at last.\n'

test.each([false, true])(
  'UAP-062 UAP-061 reasoning is kept and told as it was said, paragraphs included (streaming: %s)',
  async (streaming) => {
    const told: string[] = []
    const shown: string[] = []
    const worker = agent({
      model: scripted([says(thought), calls('add', { a: 1, b: 1 }), says(thought), says('done')]),
      tools: [add],
      execution: react(),
      strategy: { onReason: (_, text) => void told.push(text) },
    })
    let result = streaming ? undefined : await worker.generate('x', start)
    if (!result) {
      const stream = worker.stream('x', start)
      for await (const { uap } of stream)
        if (uap?.type === 'reasoning') shown.push(uap.data.reasoning)
      result = await stream.result
      expect(shown).toEqual([thought, thought])
    }
    expect([result.state.reasoning, told]).toEqual([
      [thought, thought],
      [thought, thought],
    ])
  },
)

test('UAP-069 reasoning has neither tools, nor a choice among them, nor a structure', async () => {
  const structure = { type: 'object', properties: { ok: { type: 'boolean' } } }
  const model = scripted([says('r'), calls('add', { a: 1, b: 1 }), says('r'), says('{"ok":true}')])
  const { turn } = await agent({
    model,
    tools: [add],
    toolChoice: 'required',
    structure,
    execution: react(),
  }).generate('x', start)
  expect(turn.data).toEqual({ ok: true })
  const sent = model.requests.map(({ tools, structure: asked, settings }) => [
    tools.length,
    asked !== undefined,
    settings?.toolChoice,
  ])
  expect(sent).toEqual([
    [0, false, undefined],
    [1, true, 'required'],
    [0, false, undefined],
    [1, true, 'required'],
  ])
})

test('UAP-067 UAP-062 a step that a steering message starts reasons first, too', async () => {
  const model = scripted([says('r1'), says('one'), says('r2'), says('two')])
  const stream = agent({ model, tools: [add], execution: react() }).stream('x', start)
  for await (const { upp } of stream)
    if (upp?.type === 'message_stop' && model.requests.length === 2) stream.steer('And?')
  const { state, turn } = await stream.result
  expect([turn.response.text, state.reasoning]).toEqual(['two', ['r1', 'r2']])
  expect(model.requests.map(({ tools }) => tools.length)).toEqual([0, 1, 0, 1])
  expect(model.requests[2]!.messages.slice(-2).map(({ text }) => text)).toEqual([
    'And?',
    'Think about what to do next.',
  ])
})
