import { safeJson } from '@skein/base/safe-text'
import type { NumberedEvent, ThreadInfo } from '@skein/runtime'
import type { Client, TreeEvent } from '@skein/runtime/client'
import { findThreadByPrefix, withConnection } from '../connect/connect.ts'
import { showRun, timeoutOf } from '../follow/show-run.ts'
import {
  type Command,
  ExitCode,
  RUN_OPTIONS,
  SERVER_OPTIONS,
  THREAD_OPERAND,
  defineCommand,
} from '../terminal/command.ts'
import { lineText } from '../terminal/output.ts'

/** An event; thread id and path are only present in the stream of a whole tree. */
type Shown = NumberedEvent & Partial<Pick<TreeEvent, 'threadId' | 'path'>>

/** The maximum length of an event's JSON on its line. */
const MAX_LENGTH = 120

/** `skein thread tail` */
export const threadTail: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: {
    jsonl: { type: 'boolean', description: 'Prints whole events, one JSON object per line.' },
    after: { type: 'string', value: 'id', description: 'Prints only events after this one.' },
    'until-parked': {
      type: 'boolean',
      description: 'Ends when neither the thread nor a subagent of it works any more.',
    },
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread tail 7f3a', 'skein thread tail 7f3a --until-parked --jsonl'],
  async run({ values, operands: [given = ''], output }) {
    return withConnection(values, output, async ({ client, url }) => {
      const thread = await findThreadByPrefix(client, given)
      const interrupt = new AbortController()
      const stop = (): void => interrupt.abort()
      process.once('SIGINT', stop).once('SIGTERM', stop)
      const { after } = values
      const options = { after, signal: AbortSignal.any([interrupt.signal, output.closed]) }
      const events: AsyncIterable<Shown> =
        url === undefined
          ? stored(client, thread, after)
          : client.streamTree(thread.id, { ...options, untilParked: values['until-parked'] })
      for await (const { id, event, threadId = thread.id, path = [thread.agent] } of events) {
        if (output.closed.aborted) break
        if (values.jsonl) {
          output.json({ threadId, path, id, event })
          continue
        }
        const { type, at, ...rest } = event
        const text = safeJson(rest)
        const short = text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH - 1)}…` : text
        output.line(
          `${id.padEnd(6)} ${at.slice(11, 23)} ${lineText(path.join(' › '))} ${type} ${short}`,
        )
      }
      return interrupt.signal.aborted ? ExitCode.Interrupted : ExitCode.Done
    })
  },
})

/** Yields the stored events. Without a server nothing is running, so no other events can follow. */
async function* stored(
  { threads }: Client,
  { id }: ThreadInfo,
  from = '0',
): AsyncGenerator<NumberedEvent, void, undefined> {
  for (let after = Math.trunc(Number.parseFloat(from)); ;) {
    const page = await threads.events(id, { after, limit: 1000 })
    if (page.length === 0) return
    for (const { seq, event } of page) yield { id: String(seq), event }
    after = page.at(-1)!.seq
  }
}

/** `skein thread resume` */
export const threadResume: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: RUN_OPTIONS,
  examples: ['skein thread resume 7f3a', 'skein thread resume 7f3a --timeout 5m --json'],
  async run({ values, operands: [text = ''], output }) {
    const timeoutMs = timeoutOf(values)
    return withConnection(
      values,
      output,
      async ({ client }) => {
        const before = await findThreadByPrefix(client, text)
        await client.threads.resume(before.id)
        return (await showRun(client, before, output, { ...values, timeoutMs, before })).code
      },
      { works: true },
    )
  },
})
