import type { TreeEvent } from '@skein/runtime/client'
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
    return withConnection(
      values,
      output,
      async ({ client }) => {
        const thread = await findThread(client, text)
        const left = new AbortController()
        const leave = (): void => left.abort()
        process.once('SIGINT', leave).once('SIGTERM', leave)
        const signal = AbortSignal.any([left.signal, output.closed])
        const show = (event: Omit<TreeEvent, 'position'>): void => {
          if (values.jsonl) output.json(event)
          else output.line(lineOf(event))
        }
        const after = values.after === undefined ? {} : { after: values.after }
        if (values['until-parked']) {
          const options = { ...after, signal, untilParked: true }
          for await (const { id, event } of client.stream(thread.id, options))
            show({ threadId: thread.id, path: [thread.agent], id, event })
        } else
          for await (const { position: _, ...event } of client.streamTree(thread.id, {
            ...after,
            signal,
          }))
            show(event)
        return left.signal.aborted ? ExitCode.Interrupted : ExitCode.Done
      },
      { works: true },
    )
  },
})

export default threadTail

const SHORT = 120

function lineOf({ id, path, event }: Omit<TreeEvent, 'position'>): string {
  const { type, at, ...rest } = event
  const text = JSON.stringify(rest)
  const short = text.length > SHORT ? `${text.slice(0, SHORT - 1)}…` : text
  return `${id.padEnd(6)} ${at.slice(11, 23)} ${path.join(' › ')} ${type} ${short}`
}
