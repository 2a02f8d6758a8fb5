/**
 * Live events as the stream that useChat reads, and the stream as a thread again. The page and the store agree.
 *
 * Prints:
 *
 *     start, start-step, text-start, text-delta, text-delta, text-end, tool-input-available, tool-output-error, finish-step, finish
 *     page: It is warm. / tool-warmth output-error
 *     same as stored: true
 *     read back: text, tool-call, retry-prompt
 */

// #region program
import { canonicalJson } from '@skein/base'
import type { ThreadEvent } from '@skein/threads'
import {
  UIMessageAssembler,
  UIStreamEncoder,
  fromUIMessages,
  toUIMessages,
} from '@skein/threads/ai-sdk'
import { threadFromEvents } from '@skein/threads/events'

const at = '2026-03-01T09:00:00Z'
const turnId = 't1'
const call = { toolCallId: 'c1', toolName: 'warmth', arguments: { city: 'Oslo' } }
const content = [{ type: 'text', text: 'It is warm.' }] as const
const events: ThreadEvent[] = [
  { type: 'thread_created', at, threadId: 'thread-1' },
  { type: 'turn_start', at, turnId, agentId: 'weather' },
  { type: 'step_start', at, turnId, stepId: 's1' },
  { type: 'text_delta', at, turnId, blockId: 'b', text: 'It is ' },
  { type: 'text_delta', at, turnId, blockId: 'b', text: 'warm.' },
  {
    type: 'message_added',
    at,
    turnId,
    message: { id: 'm1', type: 'assistant', content, toolCalls: [call], timestamp: at },
    finishReason: 'tool_call',
  },
  {
    type: 'tool_execution_end',
    at,
    turnId,
    toolCallId: 'c1',
    toolName: 'warmth',
    outcome: 'retry',
    result: 'Give a country too.',
  },
  { type: 'turn_end', at, turnId, outcome: 'completed' },
]

// A server writes each chunk with encodeUIChunk and ends with UI_STREAM_DONE.
const encoder = new UIStreamEncoder()
const chunks = [...events.flatMap((event) => encoder.push(event)), ...encoder.end()]
console.log(chunks.map((chunk) => chunk.type).join(', '))

const page = new UIMessageAssembler()
for (const chunk of chunks) page.push(chunk)
const shown = page.message.parts.flatMap((part) =>
  part.type === 'text' ? [part.text] : 'toolCallId' in part ? [`${part.type} ${part.state}`] : [],
)
console.log('page:', shown.join(' / '))

const stored = toUIMessages(threadFromEvents(events).value)
const isSame = canonicalJson(stored[0]?.parts) === canonicalJson(page.message.parts)
console.log('same as stored:', isSame)

// A retry is still a retry, although the page shows it as an error. That is carried in metadata, which is
// believed here because our own stream wrote it; a server ignores it in a request.
const { value } = fromUIMessages([page.message], { carrier: 'trust' })
const [turn] = value.turns
const messages = turn?.turn_type === 'agent' ? turn.messages : []
const parts = messages.flatMap((message) =>
  message.message_type === 'system' ? [] : message.parts,
)
console.log('read back:', parts.map((part) => part.part_kind).join(', '))
// #endregion program
