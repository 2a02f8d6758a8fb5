import { readFile } from 'node:fs/promises'
import { text as readAll } from 'node:stream/consumers'
import { defineCommand, JSON_OPTION, SERVER_OPTIONS, type Command } from '../command.ts'
import { CommandError } from '../command-error.ts'
import { withConnection } from '../connect/connect.ts'
import { ExitCode } from '../exit-code.ts'

const threadImport: Command = defineCommand({
  operands: [{ name: 'file', description: 'An exported log; `-` reads standard input.' }],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: [
    'skein thread import thread.jsonl',
    'skein thread export 7f3a | skein thread import -',
  ],
  async run({ values, operands: [file = '-'], output }) {
    const lines = file === '-' ? await readAll(process.stdin) : await read(file)
    return withConnection(values, output, async ({ client }) => {
      const thread = await client.threads.import(lines)
      if (values.json) output.json(thread)
      else output.line(thread.id)
      return ExitCode.Done
    })
  },
})

export default threadImport

async function read(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((cause: unknown) => {
    throw new CommandError(`${file} cannot be read.`, { code: 'FILE_UNREADABLE', cause })
  })
}
