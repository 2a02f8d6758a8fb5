import { defineCommand, RUN_OPTIONS, type Command } from '../command.ts'
import { withConnection } from '../connect/connect.ts'
import { findThread } from '../find-thread.ts'
import { showRun, timeoutOf } from '../follow/show-run.ts'
import { readText } from '../read-text.ts'

const run: Command = defineCommand({
  operands: [
    { name: 'agent', description: 'Who to ask.' },
    { name: 'text', description: 'What to say; `-` reads standard input.', isOptional: true },
  ],
  options: {
    thread: { type: 'string', value: 'id', description: 'Goes on with this thread.' },
    ...RUN_OPTIONS,
  },
  examples: ['skein run support "Where is order O-7?"', 'git diff | skein run reviewer - --json'],
  async run({ values, operands: [agent = '', given], output }) {
    const timeoutMs = timeoutOf(values)
    const text = await readText(given, '<text>')
    return withConnection(
      values,
      output,
      async ({ client }) => {
        const before =
          values.thread === undefined ? undefined : await findThread(client, values.thread)
        if (before) await client.threads.send(before.id, text)
        const thread = before ?? (await client.threads.create({ agent, message: text }))
        return (await showRun(client, thread, output, { ...values, timeoutMs, before })).code
      },
      { works: true },
    )
  },
})

export default run
