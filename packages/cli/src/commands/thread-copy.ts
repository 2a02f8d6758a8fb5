import { readFile } from 'node:fs/promises'
import { text as readAll } from 'node:stream/consumers'
import type { ThreadInfo } from '@skein/runtime'
import { findThreadByPrefix } from '../connect/short-ids.ts'
import { withConnection } from '../connect/connect.ts'
import {
  type Command,
  CommandError,
  defineCommand,
  ExitCode,
  JSON_OPTION,
  SERVER_OPTIONS,
  THREAD_OPERAND,
  usageError,
} from '../terminal/command.ts'
import type { Output } from '../terminal/output.ts'
import { byteText } from '../terminal/progress.ts'

/** `skein thread fork` */
export const threadFork: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: {
    'up-to': {
      type: 'string',
      value: 'message',
      description: 'Id of the last message to copy. Default: all messages.',
    },
    title: { type: 'string', value: 'text', description: 'Title of the new thread.' },
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread fork 7f3a', 'skein thread fork 7f3a --title "Another way" --json'],
  async run({ values, operands: [text = ''], output }) {
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThreadByPrefix(client, text)
      const options = { upTo: values['up-to'], title: values.title }
      return printNew(await client.threads.fork(id, options), values, output)
    })
  },
})

/** `skein thread export` */
export const threadExport: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: {
    format: {
      type: 'string',
      value: 'jsonl|thread',
      description:
        '`jsonl`: the log, which `import` reads. `thread`: a ThreadProtocol document. Default: jsonl.',
    },
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread export 7f3a > thread.jsonl', 'skein thread export 7f3a --format thread'],
  async run({ values, operands: [text = ''], output }) {
    const { format = 'jsonl' } = values
    if (format !== 'jsonl' && format !== 'thread')
      throw usageError(`--format is jsonl or thread, not "${format}".`)
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThreadByPrefix(client, text)
      if (format === 'thread') output.json(await client.threads.document(id))
      else output.jsonLines((await client.threads.export(id)).trimEnd())
      return ExitCode.Done
    })
  },
})

/** `skein thread import` */
export const threadImport: Command = defineCommand({
  operands: [{ name: 'file', description: 'An exported log; `-` reads standard input.' }],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: [
    'skein thread import thread.jsonl',
    'skein thread export 7f3a | skein thread import -',
  ],
  async run({ values, operands: [file = '-'], output }) {
    const reading = file === '-' ? readAll(process.stdin) : readFile(file, 'utf8')
    const lines = await reading.catch((cause: unknown) => {
      throw new CommandError(`${file} cannot be read.`, {
        code: 'FILE_UNREADABLE',
        hint: 'Name a file that `skein thread export` has written; `-` reads standard input.',
        cause,
      })
    })
    return withConnection(
      values,
      output,
      async ({ client }) => {
        output.status(`importing ${byteText(Buffer.byteLength(lines))}`)
        return printNew(await client.threads.import(lines), values, output)
      },
      { creates: true },
    )
  },
})

/** Prints a thread that was just created. */
function printNew(thread: ThreadInfo, { json }: { json?: boolean }, output: Output): ExitCode {
  if (json) output.json(thread)
  else output.line(thread.id)
  return ExitCode.Done
}
