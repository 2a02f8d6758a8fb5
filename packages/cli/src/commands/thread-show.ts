import { messageFromJSON } from '@skein/ai'
import type { ThreadHead } from '@skein/runtime'
import type { WireMessage } from '@skein/runtime/client'
import { defineCommand, JSON_OPTION, SERVER_OPTIONS, type Command } from '../command.ts'
import { withConnection } from '../connect/connect.ts'
import { ExitCode } from '../exit-code.ts'
import { findThread } from '../find-thread.ts'
import { waitingLines } from '../follow/report.ts'
import type { Output } from '../output.ts'

const threadShow: Command = defineCommand({
  operands: [{ name: 'thread', description: 'Its id, or the beginning or end of it.' }],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: ['skein thread show 7f3a', 'skein thread show 7f3a --json | jq .messages'],
  async run({ values, operands: [text = ''], output }) {
    return withConnection(values, output, async ({ client }) => {
      const thread = await findThread(client, text)
      const messages = await client.threads.messages(thread.id, { limit: 1000 })
      if (values.json) output.json({ thread, messages })
      else {
        output.line(headline(thread, output))
        for (const message of messages) for (const line of linesOf(message)) output.line(line)
        const waiting = await client.inbox.list({ rootId: thread.rootId })
        for (const item of waiting) for (const line of waitingLines(item)) output.say(line)
      }
      return ExitCode.Done
    })
  },
})

export default threadShow

function headline({ id, agent, lifecycle, tokens, seq }: ThreadHead, output: Output): string {
  return output.paintData(
    'dim',
    `${id} · ${agent} · ${lifecycle} · ${tokens} tokens · ${seq} events`,
  )
}

function linesOf({ message: stored, side, subagentId }: WireMessage): string[] {
  const message = messageFromJSON(stored)
  switch (message.type) {
    case 'user':
      return [`${subagentId === undefined ? 'user' : 'subagent'}: ${message.text}`]
    case 'assistant': {
      const calls = (message.toolCalls ?? []).map(
        ({ toolName, arguments: args }) => `${side} calls ${toolName} ${JSON.stringify(args)}`,
      )
      return [...(message.text === '' ? [] : [`${side}: ${message.text}`]), ...calls]
    }
    case 'tool_result':
      return message.results.map(
        ({ result, isError }) => `  ${isError ? 'error' : 'result'} ${JSON.stringify(result)}`,
      )
  }
}
