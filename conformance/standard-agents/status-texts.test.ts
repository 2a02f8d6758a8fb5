// How the list of subagents describes a child that has published a status text.
import { expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { defineTool } from '@skein/runtime'
import { threadView } from '@skein/runtime/view'
import { pair, solo, tool } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

const finish = tool('finish')
const ask = defineTool({ name: 'ask', description: 'Asks a person.', risk: 'read_only' })

test.each(
  [{}, { resumable: {} }].flatMap((config) =>
    ['sessionStatus', 'setStatus'].map((by) => [by, config] as const),
  ),
)('SA-73 SA-75 the text of %s stays while the child waits for a person: %j', async (by, config) => {
  const [answered, go] = [latch(), latch()]
  const status = tool('status', async (state) => {
    if (by === 'setStatus') await state.setStatus('counting')
  })
  const helper = pair('helper', {
    a: {
      script: [
        calls('status', { text: 'counting' }),
        calls('ask'),
        async () => {
          answered.open()
          await go.reached
          return calls('finish', { summary: 'done' })
        },
      ],
      tools: [finish, status, ask],
      sessionStop: { name: finish, messageProperty: 'summary' },
      ...(by === 'sessionStatus' && {
        sessionStatus: { name: status, messageProperty: 'text' },
      }),
    },
    b: { script: [] },
  })
  const args = { agent: 'helper', name: 'Ada', message: 'go' }
  const top = solo('boss', {
    script: (_, index) =>
      index === 0
        ? calls('resumable' in config ? 'subagent_create' : 'helper', args)
        : says('I see.'),
    tools: [{ name: helper, blocking: false, ...config }],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  await it.idle()
  const shown = async () => {
    const [viewed] = threadView(await it.threads.events(id)).children
    const [listed] = await it.threads.children(id)
    return [listed?.status, viewed!.status, viewed!.statusText]
  }
  expect(await shown()).toEqual(['awaiting_human', 'awaiting_human', 'counting'])
  const [item] = await it.runtime.inbox.list()
  await it.runtime.inbox.answer(item!, { type: 'result', value: 'yes' })
  await answered.reached
  expect(await shown()).toEqual(['counting', 'running', 'counting'])
  go.open()
  await it.idle()
  expect(await shown()).toEqual(
    'resumable' in config ? ['idle', 'idle', undefined] : [undefined, 'completed', undefined],
  )
})
