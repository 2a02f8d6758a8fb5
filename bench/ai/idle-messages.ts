import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { AssistantMessage, Thread, UserMessage } from '@skein/ai'
import type { Contender, Measured } from '../runner/bench.ts'

const conversations = 1000
const messages = 200

/** Conversations at rest, in the plain form of a vendor and in ours; texts have 120 characters. */
export function idleMessages(
  measure: (collect: () => void, build: () => unknown) => Measured,
): Readonly<Record<string, Contender>> {
  return {
    'plain objects': idle(measure, (text, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: text,
    })),
    skein: idle(
      measure,
      (text, index) => (index % 2 === 0 ? new UserMessage(text) : new AssistantMessage(text)),
      (list) => new Thread({ messages: list }),
    ),
  }
}

function idle<Message>(
  measure: (collect: () => void, build: () => unknown) => Measured,
  message: (text: string, index: number) => Message,
  conversation: (list: Message[]) => unknown = (list) => list,
): Contender {
  return {
    prepare() {
      setFlagsFromString('--expose-gc')
      const collect = runInNewContext('gc') as () => void
      return () => measure(collect, () => conversationsOf(message, conversation))
    },
  }
}

function conversationsOf<Message>(
  message: (text: string, index: number) => Message,
  conversation: (list: Message[]) => unknown,
): unknown[] {
  return Array.from({ length: conversations }, (_, at) =>
    conversation(Array.from({ length: messages }, (_, index) => message(textOf(at, index), index))),
  )
}

/** A text of its own in one piece, as parsed JSON has it. */
function textOf(at: number, index: number): string {
  return Buffer.alloc(120, `${at} ${index} The quick brown fox. `).toString('latin1')
}

/** How many messages one repetition holds. */
export const heldMessages: number = conversations * messages
