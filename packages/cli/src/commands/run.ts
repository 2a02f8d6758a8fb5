import { text as readAll } from 'node:stream/consumers'
import type { SendMessage } from '@skein/runtime'
import { withConnection } from '../connect/connect.ts'
import { findThreadByPrefix } from '../connect/find.ts'
import { showRun, timeoutOf } from '../follow/show-run.ts'
import { defineCommand, RUN_OPTIONS, usageError, type Command } from '../terminal/command.ts'

const IF_BUSY = ['enqueue', 'reject', 'cut', 'restart'] as const satisfies readonly NonNullable<
  SendMessage['ifBusy']
>[]

/** `skein run` */
export const run: Command = defineCommand({
  operands: [
    { name: 'agent', description: 'Name of the agent.' },
    {
      name: 'text',
      description: 'The message; `-` reads it from standard input.',
      isOptional: true,
    },
  ],
  options: {
    thread: { type: 'string', value: 'id', description: 'Sends the message to this thread.' },
    'if-busy': {
      type: 'string',
      value: IF_BUSY.join('|'),
      description: 'What the message does to a --thread that works or waits. Default: enqueue.',
    },
    ...RUN_OPTIONS,
  },
  examples: ['skein run support "Where is order O-7?"', 'git diff | skein run reviewer - --json'],
  async run({ values, operands: [agent = '', given], output }) {
    const timeoutMs = timeoutOf(values)
    const ifBusy = IF_BUSY.find((known) => known === values['if-busy'])
    if (values['if-busy'] !== undefined && (!ifBusy || values.thread === undefined))
      throw usageError(
        '--if-busy says what the message does to a thread that is busy.',
        `Give --thread, and one of ${IF_BUSY.join(', ')}.`,
      )
    if (given === undefined && process.stdin.isTTY)
      throw usageError(
        '<text> is missing.',
        'Give it as an argument, or `-` to read standard input.',
      )
    const isPiped = given === undefined || given === '-'
    const text = isPiped ? (await readAll(process.stdin)).trim() : given
    if (isPiped && text === '') throw usageError('<text> is empty.', 'Standard input held no text.')
    return withConnection(
      values,
      output,
      async ({ client }) => {
        const before =
          values.thread === undefined ? undefined : await findThreadByPrefix(client, values.thread)
        if (before) await client.threads.send(before.id, { text, ifBusy })
        const thread = before ?? (await client.threads.create({ agent, message: text }))
        return (await showRun(client, thread, output, { ...values, timeoutMs, before })).code
      },
      { works: true },
    )
  },
})
