import { expect, test } from 'vitest'
import { plain } from '../../../test/plain.ts'
import { realChat } from '../../../test/real-chat.ts'
import { opening } from '../../../test/sample-events.ts'
import { threadFromEvents } from '../../events/event-to-thread.ts'
import type { ThreadEvent } from '../../events/event.ts'
import { UIStreamEncoder } from './encode-events.ts'
import { toUIMessages } from './to-ui-messages.ts'

// The document has such an event after the response although it is older (TP-V5): a client that has begun to
// show the step cannot put anything before it.
test('TP-54 an event that arrives while text is streamed is shown after that text, live and stored', async () => {
  const at = (second: number) => `2026-05-01T13:00:0${second}Z`
  const turnId = 'r1'
  const content = [{ type: 'text', text: 'Let me look.' }] as const
  const events: ThreadEvent[] = [
    ...opening,
    { type: 'turn_start', at: at(1), turnId, agentId: 'guide/a' },
    { type: 'step_start', at: at(1), turnId, stepId: 's1' },
    { type: 'text_delta', at: at(2), turnId, blockId: 'b', text: 'Let me ' },
    { type: 'custom_event', at: at(3), turnId, name: 'app.note', data: 7 },
    { type: 'text_delta', at: at(4), turnId, blockId: 'b', text: 'look.' },
    {
      type: 'message_added',
      at: at(5),
      turnId,
      message: { id: 'm2', type: 'assistant', content, toolCalls: [], timestamp: at(5) },
    },
    { type: 'turn_end', at: at(6), turnId, outcome: 'completed' },
  ]
  const stored = plain(toUIMessages(threadFromEvents(events).value))
  const encoder = new UIStreamEncoder()
  const chunks = [...events.flatMap((event) => encoder.push(event)), ...encoder.end()]
  const live = await realChat(stored.slice(0, 1), chunks)
  expect(live.messages).toEqual(stored)
  expect(live.messages.at(-1)).toMatchObject({
    parts: [{ type: 'step-start' }, { type: 'text' }, { type: 'data-app.note' }],
  })
})
