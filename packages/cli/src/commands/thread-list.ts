import { defineCommand, JSON_OPTION, SERVER_OPTIONS, type Command } from '../command.ts'
import { usageError } from '../command-error.ts'
import { withConnection } from '../connect/connect.ts'
import { ExitCode } from '../exit-code.ts'
import { textTable } from '../text-table.ts'
import { timeAgo } from '../time-ago.ts'

const threadList: Command = defineCommand({
  operands: [],
  options: {
    agent: { type: 'string', value: 'name', description: 'Of this agent.' },
    all: { type: 'boolean', description: 'Subagents too.' },
    limit: { type: 'string', value: 'number', description: 'How many; default 20.' },
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread list', 'skein thread list --agent support --json'],
  async run({ values, output }) {
    const limit = Number(values.limit ?? 20)
    if (!Number.isInteger(limit) || limit < 1 || limit > 1000)
      throw usageError(`--limit takes a number from 1 to 1000, not "${values.limit}".`)
    return withConnection(values, output, async ({ client }) => {
      const threads = await client.threads.list({
        limit,
        ...(values.agent !== undefined && { agent: values.agent }),
        ...(!values.all && { parentId: null }),
      })
      if (values.json) output.json({ threads })
      else if (threads.length === 0)
        output.say('No threads yet. `skein run <agent> "text"` makes one.')
      else
        for (const line of textTable(
          threads.map(({ id, agent, lifecycle, tokens, updatedAt, title }) => [
            id,
            agent,
            lifecycle,
            `${tokens} tokens`,
            timeAgo(updatedAt),
            title ?? '',
          ]),
        ))
          output.line(line.trimEnd())
      return ExitCode.Done
    })
  },
})

export default threadList
