import { defineCommand, JSON_OPTION, SERVER_OPTIONS, type Command } from '../command.ts'
import { withConnection } from '../connect/connect.ts'
import { ExitCode } from '../exit-code.ts'
import { findThread } from '../find-thread.ts'

const threadFork: Command = defineCommand({
  operands: [{ name: 'thread', description: 'Its id, or the beginning or end of it.' }],
  options: {
    'up-to': {
      type: 'string',
      value: 'message',
      description: 'Last message to keep; default all.',
    },
    title: { type: 'string', value: 'text', description: 'Of the new thread.' },
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread fork 7f3a', 'skein thread fork 7f3a --title "Another way" --json'],
  async run({ values, operands: [text = ''], output }) {
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThread(client, text)
      const thread = await client.threads.fork(id, {
        ...(values['up-to'] !== undefined && { upTo: values['up-to'] }),
        ...(values.title !== undefined && { title: values.title }),
      })
      if (values.json) output.json(thread)
      else output.line(thread.id)
      return ExitCode.Done
    })
  },
})

export default threadFork
