import { shortIdsOf } from '../connect/short-ids.ts'
import { withConnection } from '../connect/connect.ts'
import {
  type Command,
  defineCommand,
  ExitCode,
  JSON_OPTION,
  SERVER_OPTIONS,
  usageError,
} from '../terminal/command.ts'
import { costText, timeAgo } from '../terminal/format.ts'
import { textTable } from '../terminal/table.ts'

/** `skein thread list` */
export const threadList: Command = defineCommand({
  operands: [],
  options: {
    agent: { type: 'string', value: 'name', description: 'Lists only threads of this agent.' },
    tool: {
      type: 'string',
      value: 'name',
      description: 'Lists only threads that called this tool, themselves or through a subagent.',
    },
    all: { type: 'boolean', description: 'Also lists the threads of subagents.' },
    limit: { type: 'string', value: 'number', description: 'How many to list. Default: 20.' },
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread list', 'skein thread list --agent support --json'],
  async run({ values, output }) {
    const { agent, tool, all, json } = values
    const limit = Number(values.limit ?? 20)
    if (!Number.isInteger(limit) || limit < 1 || limit > 1000)
      throw usageError(`--limit takes a number from 1 to 1000, not "${values.limit}".`)
    return withConnection(values, output, async ({ client }) => {
      const parentId = all ? undefined : null
      const threads = await client.threads.list({ limit, agent, tool, parentId })
      if (json) output.json({ threads })
      else if (threads.length === 0)
        output.say('No threads yet. `skein run <agent> "text"` creates one.')
      if (json) return ExitCode.Done
      const shortIds = shortIdsOf(threads.map(({ id }) => id))
      const rows = threads.map((thread, index) => [
        shortIds[index]!,
        thread.agent,
        thread.lifecycle,
        `${thread.tree.tokens} tokens`,
        costText(thread.tree.costUsd),
        timeAgo(thread.updatedAt),
        thread.title ?? thread.firstWords ?? '',
      ])
      for (const line of textTable(rows)) output.line(line.trimEnd())
      return ExitCode.Done
    })
  },
})
