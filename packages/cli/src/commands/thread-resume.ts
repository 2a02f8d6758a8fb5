import { defineCommand, RUN_OPTIONS, type Command } from '../command.ts'
import { withConnection } from '../connect/connect.ts'
import { findThread } from '../find-thread.ts'
import { showRun, timeoutOf } from '../follow/show-run.ts'

const threadResume: Command = defineCommand({
  operands: [{ name: 'thread', description: 'Its id, or the beginning or end of it.' }],
  options: RUN_OPTIONS,
  examples: ['skein thread resume 7f3a', 'skein thread resume 7f3a --timeout 5m --json'],
  async run({ values, operands: [text = ''], output }) {
    const timeoutMs = timeoutOf(values)
    return withConnection(
      values,
      output,
      async ({ client }) => {
        const before = await findThread(client, text)
        await client.threads.resume(before.id)
        return (await showRun(client, before, output, { ...values, timeoutMs, before })).code
      },
      { works: true },
    )
  },
})

export default threadResume
