import { defineCommand, JSON_OPTION, SERVER_OPTIONS, type Command } from '../command.ts'
import { withConnection } from '../connect/connect.ts'
import { ExitCode } from '../exit-code.ts'
import { timeAgo } from '../time-ago.ts'

const inbox: Command = defineCommand({
  operands: [],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: ['skein inbox', "skein inbox --json | jq '.waiting[0]'"],
  async run({ values, output }) {
    return withConnection(values, output, async ({ client }) => {
      const waiting = await client.inbox.list()
      if (values.json) output.json({ waiting })
      else if (waiting.length === 0) output.say('Nothing waits for a person.')
      else
        for (const { threadId, interruptId, path, toolName, kind, openedAt, ...item } of waiting) {
          const what = `${toolName} ${JSON.stringify(item.arguments)}`
          const risk = item.risk === undefined ? '' : `, ${item.risk}`
          const ago = timeAgo(Date.parse(openedAt))
          output.line(`${threadId} ${interruptId}`)
          output.line(`  ${path.join(' › ')} asks: ${what} (${kind}${risk}, ${ago})`)
        }
      return ExitCode.Done
    })
  },
})

export default inbox
