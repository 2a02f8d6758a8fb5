import { defineCommand, SERVER_OPTIONS, type Command } from '../command.ts'
import { usageError } from '../command-error.ts'
import { withConnection } from '../connect/connect.ts'
import { ExitCode } from '../exit-code.ts'
import { findThread } from '../find-thread.ts'

const threadExport: Command = defineCommand({
  operands: [{ name: 'thread', description: 'Its id, or the beginning or end of it.' }],
  options: {
    format: {
      type: 'string',
      value: 'jsonl|thread',
      description: 'The log (default; `import` reads it), or a ThreadProtocol document.',
    },
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread export 7f3a > thread.jsonl', 'skein thread export 7f3a --format thread'],
  async run({ values, operands: [text = ''], output }) {
    const { format = 'jsonl' } = values
    if (format !== 'jsonl' && format !== 'thread')
      throw usageError(`--format is jsonl or thread, not "${format}".`)
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThread(client, text)
      if (format === 'thread') output.json(await client.threads.document(id))
      else output.line((await client.threads.export(id)).trimEnd())
      return ExitCode.Done
    })
  },
})

export default threadExport
