import { defineCommand, JSON_OPTION, SERVER_OPTIONS, type Command } from '../command.ts'
import { withConnection } from '../connect/connect.ts'
import { ExitCode } from '../exit-code.ts'
import { findThread } from '../find-thread.ts'

const threadStop: Command = defineCommand({
  operands: [{ name: 'thread', description: 'Its id, or the beginning or end of it.' }],
  options: {
    'after-step': { type: 'boolean', description: 'Lets the running step finish.' },
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread stop 7f3a', 'skein thread stop 7f3a --after-step'],
  async run({ values, operands: [text = ''], output }) {
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThread(client, text)
      await client.threads.stop(id, { afterStep: values['after-step'] === true })
      if (values.json) output.json(await client.threads.get(id))
      else output.say(`Stopping ${id}. Go on with: skein thread resume ${id}`)
      return ExitCode.Done
    })
  },
})

export default threadStop
