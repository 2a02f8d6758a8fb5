import type { NumberedEvent, ThreadHead } from '@skein/runtime'
import type { Client, TreeEvent } from '@skein/runtime/client'
import { defineCommand, SERVER_OPTIONS, type Command } from '../command.ts'
import { withConnection } from '../connect/connect.ts'
import { ExitCode } from '../exit-code.ts'
import { findThread } from '../find-thread.ts'

const threadTail: Command = defineCommand({
  operands: [{ name: 'thread', description: 'Its id, or the beginning or end of it.' }],
  options: {
    jsonl: { type: 'boolean', description: 'Whole events, one JSON object a line.' },
    after: { type: 'string', value: 'id', description: 'Only what came after this event.' },
    'until-parked': { type: 'boolean', description: 'Ends when the thread is at rest.' },
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread tail 7f3a', 'skein thread tail 7f3a --until-parked --jsonl'],
  async run({ values, operands: [text = ''], output }) {
    return withConnection(values, output, async ({ client, url }) => {
      const thread = await findThread(client, text)
      const left = new AbortController()
      const leave = (): void => left.abort()
      process.once('SIGINT', leave).once('SIGTERM', leave)
      const options = {
        signal: AbortSignal.any([left.signal, output.closed]),
        ...(values.after !== undefined && { after: values.after }),
      }
      const events =
        url === undefined
          ? stored(client, thread, values.after)
          : values['until-parked']
            ? ofOne(client.stream(thread.id, { ...options, untilParked: true }), thread)
            : client.streamTree(thread.id, options)
      for await (const { threadId, path, id, event } of events) {
        if (output.closed.aborted) break
        const shown = { threadId, path, id, event }
        if (values.jsonl) output.json(shown)
        else output.line(lineOf(shown))
      }
      return left.signal.aborted ? ExitCode.Interrupted : ExitCode.Done
    })
  },
})

export default threadTail

type Shown = Omit<TreeEvent, 'position'>

/** Without a server nothing happens: the log is all there is. */
async function* stored(
  { threads }: Client,
  thread: ThreadHead,
  from: string | undefined,
): AsyncGenerator<Shown, void, undefined> {
  for (let after = Math.trunc(Number.parseFloat(from ?? '0')); ;) {
    const page = await threads.events(thread.id, { after, limit: 1000 })
    if (page.length === 0) return
    for (const { seq, event } of page)
      yield { threadId: thread.id, path: [thread.agent], id: String(seq), event }
    after = page.at(-1)!.seq
  }
}

async function* ofOne(
  events: AsyncIterable<NumberedEvent>,
  { id: threadId, agent }: ThreadHead,
): AsyncGenerator<Shown, void, undefined> {
  for await (const numbered of events) yield { threadId, path: [agent], ...numbered }
}

const SHORT = 120

function lineOf({ id, path, event }: Shown): string {
  const { type, at, ...rest } = event
  const text = JSON.stringify(rest)
  const short = text.length > SHORT ? `${text.slice(0, SHORT - 1)}…` : text
  return `${id.padEnd(6)} ${at.slice(11, 23)} ${path.join(' › ')} ${type} ${short}`
}
