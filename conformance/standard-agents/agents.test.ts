import { expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { linesOf, requestsOf, solo, tool } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

test('SA-14 side A is the model, side B the person: the thread parks for the next message', async () => {
  const agent = solo('one', {
    script: [calls('look'), says('Hello.'), says('Bye.')],
    tools: [tool('look')],
  })
  const it = await simulate({ agents: [agent] })
  const { id, outcome, text } = await it.ask('hi')
  expect({ outcome, text }).toEqual({ outcome: 'completed', text: 'Hello.' })
  await it.idle()
  expect((await it.threads.get(id)).lifecycle).toBe('idle')
  await it.run(id, 'bye')
  expect(linesOf(requestsOf(agent)[2])).toEqual([
    'user: hi',
    'assistant:  [look({})]',
    'tool_result: look = "ok"',
    'assistant: Hello.',
    'user: bye',
  ])
})
