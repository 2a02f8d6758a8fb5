import { seededRandom } from '@skein/base'
import type { MessagePart, Thread, ThreadMessage, Turn } from '@skein/threads'

const WORDS =
  'the log keeps every turn of yarn in order naïve café 東京 weather “quoted” line\nbreak agent tool answer plan sunny'.split(
    ' ',
  )

/** A thread of about this many megabytes of JSON with Unicode text, tool calls, thinking and usage. */
export function bigThread(megabytes: number): Thread {
  const random = seededRandom(20)
  const turns: Turn[] = []
  const words = (count: number): string =>
    Array.from({ length: count }, () => WORDS[Math.floor(random() * WORDS.length)]).join(' ')
  let micros = 0
  const time = (): string => {
    micros += 137_001
    const date = new Date(Date.UTC(2026, 0, 1) + Math.floor(micros / 1000))
    return date.toISOString().replace('Z', `${String(micros % 1000).padStart(3, '0')}Z`)
  }
  for (let bytes = 0; bytes < megabytes * 1_000_000;) {
    const index = turns.length
    const user: Turn = {
      turn_type: 'user',
      submitted_at: time(),
      parts: [{ part_kind: 'user-prompt', content: words(20) }],
    }
    const messages = [
      message('response', time(), [
        {
          part_kind: 'thinking',
          content: words(40),
          provider_name: 'acme',
          signature: 'c2lnbmF0dXJl',
        },
        { part_kind: 'text', content: words(15) },
        {
          part_kind: 'tool-call',
          tool_name: 'look_up',
          tool_call_id: `call_${index}`,
          args: { q: words(3), limit: index },
        },
      ]),
      message('request', time(), [
        {
          part_kind: 'tool-return',
          tool_name: 'look_up',
          tool_call_id: `call_${index}`,
          status: 'success',
          content: { temperature: 18, rows: [1, 2, 4.5], note: words(20) },
        },
      ]),
      message('response', time(), [{ part_kind: 'text', content: words(90) }]),
    ]
    const agent: Turn = {
      turn_type: 'agent',
      agent_id: 'ada',
      started_at: messages[0]!.timestamp,
      completed_at: messages.at(-1)!.timestamp,
      messages,
      total_usage: { input_tokens: 240, output_tokens: 90 },
    }
    turns.push(user, agent)
    bytes += new TextEncoder().encode(JSON.stringify([user, agent])).length
  }
  return {
    version: '2.0.0',
    thread_id: '0197c3aa-6d43-7000-8000-000000000001',
    created_at: '2026-01-01T00:00:00Z',
    updated_at: '2026-12-31T00:00:00Z',
    agents: { ada: { agent_id: 'ada', agent_name: 'Ada', created_at: '2026-01-01T00:00:00Z' } },
    turns,
  }
}

function message(
  type: 'request' | 'response',
  timestamp: string,
  parts: readonly MessagePart[],
): ThreadMessage {
  const base: ThreadMessage = { message_type: type, timestamp, agent_id: 'ada', parts }
  if (type === 'request') return base
  return {
    ...base,
    model_name: 'model-a',
    usage: { input_tokens: 120, output_tokens: 45 },
    finish_reason: 'stop',
  }
}
