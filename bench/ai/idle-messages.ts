import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { AssistantMessage, Thread, UserMessage } from '@skein/ai'
import type { Contender } from '../runner/bench.ts'

const conversations = 1000
const each = 200
export const messages: number = conversations * each

/** A text of its own for each message, flat in memory as one that came over the network is. */
function textOf(index: number): string {
  return Buffer.from(
    `${index} `.padEnd(120, 'The quick brown fox jumps over the lazy dog. '),
  ).toString('latin1')
}

/** Conversations that nobody uses at the moment, held by the process. */
function hold<T>(make: (texts: readonly string[]) => T): T[] {
  return Array.from({ length: conversations }, (_, conversation) =>
    make(Array.from({ length: each }, (_, index) => textOf(conversation * each + index))),
  )
}

const made = {
  'plain objects': () =>
    hold((texts) =>
      texts.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content })),
    ),
  skein: () =>
    hold((texts) =>
      new Thread().push(
        ...texts.map((text, index) =>
          index % 2 === 0 ? new UserMessage(text) : new AssistantMessage(text),
        ),
      ),
    ),
}

/** One repetition for each way to hold them; it gets the heap without them and a full collection. */
export function idleMessages(
  repetition: (heapBefore: number, collect: () => void, held: readonly unknown[]) => unknown,
): Readonly<Record<string, Contender>> {
  return Object.fromEntries(
    Object.entries(made).map(([name, make]) => [
      name,
      {
        prepare() {
          setFlagsFromString('--expose-gc')
          const collect = runInNewContext('gc') as () => void
          collect()
          const before = process.memoryUsage().heapUsed
          const held = make()
          return () => repetition(before, collect, held)
        },
      },
    ]),
  )
}
