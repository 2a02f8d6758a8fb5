import { messageFromJSON } from '@skein/ai'
import { isPlainObject } from '@skein/base'
import { callText } from '@skein/base/safe-text'
import type { ThreadInfo } from '@skein/runtime'
import type { Client, WireMessage } from '@skein/server/client'
import { findThreadByPrefix } from '../connect/short-ids.ts'
import { withConnection } from '../connect/connect.ts'
import {
  type Command,
  defineCommand,
  ExitCode,
  JSON_OPTION,
  SERVER_OPTIONS,
  THREAD_OPERAND,
} from '../terminal/command.ts'
import { costText, indented } from '../terminal/format.ts'
import { lineText } from '../terminal/table.ts'
import { undoText, waitingLines } from '../terminal/waiting-text.ts'
import { answerText } from './thread-tail.ts'

/** `skein thread show` */
export const threadShow: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: ['skein thread show 7f3a', 'skein thread show 7f3a --json | jq .messages'],
  async run({ values, operands: [text = ''], output }) {
    return withConnection(values, output, async ({ client }) => {
      const thread = await findThreadByPrefix(client, text)
      const decisions = await decisionsOf(client, thread.id)
      if (values.json) {
        const messages = await collected(messagesOf(client, thread.id))
        const children = await collected(childrenOf(client, thread.id))
        output.json({ thread, messages, children, decisions })
        return ExitCode.Done
      }
      const { id, agent, lifecycle, tokens, tree, seq } = thread
      const own = tree.tokens === tokens ? '' : ` (${tokens} without subagents)`
      const costs = `${tree.tokens} tokens${own} · ${costText(tree.costUsd)}`
      const headline = `${id} · ${agent} · ${lifecycle} · ${costs} · ${seq} events`
      output.line(output.paint('dim', headline))
      for await (const message of messagesOf(client, thread.id))
        for (const line of linesOfMessage(message)) output.line(line)
      for await (const child of childrenOf(client, thread.id))
        output.line(
          `subagent ${lineText(child.agent)} · ${child.lifecycle} · ${child.tree.tokens} tokens · ${child.id}`,
        )
      for (const { text, call, undo } of decisions)
        output.line(`${call}: ${text}${undo === '' ? '' : ` (${undo})`}`)
      const waiting = await client.inbox.list({ rootId: thread.rootId })
      for (const item of waiting) for (const line of waitingLines(item)) output.say(line)
      return ExitCode.Done
    })
  },
})

/** How many messages or threads one request returns. */
const PAGE = 500

async function collected<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

/** Yields all messages of a thread, and reads them a page at a time. */
async function* messagesOf(
  { threads }: Client,
  id: string,
): AsyncGenerator<WireMessage, void, undefined> {
  for (let offset = 0; ; offset += PAGE) {
    const page = await threads.messages(id, { offset, limit: PAGE })
    yield* page
    if (page.length < PAGE) return
  }
}

/** Yields all children of a thread, the oldest first. */
async function* childrenOf(
  { threads }: Client,
  parentId: string,
): AsyncGenerator<ThreadInfo, void, undefined> {
  let cursor: string | undefined
  do {
    const page = await threads.page({ parentId, sort: 'oldest', limit: PAGE, cursor })
    yield* page.threads
    cursor = page.nextCursor
  } while (cursor !== undefined)
}

/** A person's decision about a call: who decided what about which call, and how the call can be undone. */
interface Decision {
  readonly text: string
  readonly call: string
  readonly undo: string
}

async function decisionsOf({ threads }: Client, id: string): Promise<readonly Decision[]> {
  const questions = new Map<string, unknown>()
  const calls = new Map<string, string>()
  const decisions: Decision[] = []
  for (let after = 0; ;) {
    const page = await threads.events(id, { after, limit: 1000 })
    for (const { event } of page) {
      if (event.type === 'message_added' && event.message.type === 'assistant')
        for (const call of event.message.toolCalls ?? [])
          calls.set(call.toolCallId, callText(call.toolName, call.arguments))
      if (event.type === 'interrupt_opened') questions.set(event.interrupt.id, event.interrupt)
      const interrupt = event.type === 'interrupt_answered' && questions.get(event.interruptId)
      if (event.type !== 'interrupt_answered' || !isPlainObject(interrupt)) continue
      const { kind, toolCallId, request } = interrupt
      if (kind !== 'approval') continue
      const action = isPlainObject(request) ? request['action'] : undefined
      decisions.push({
        text: answerText(event),
        call: calls.get(String(toolCallId)) ?? String(toolCallId),
        undo: undoText(isPlainObject(action) ? action['rollback'] : undefined),
      })
    }
    if (page.length < 1000) return decisions
    after = page.at(-1)!.seq
  }
}

/** Returns a stored message as lines of text. */
function linesOfMessage({ message: stored, side, subagentId, delivery }: WireMessage): string[] {
  const message = messageFromJSON(stored)
  switch (message.type) {
    case 'user':
      return [`${subagentId === undefined ? 'user' : 'subagent'}: ${indented(message.text)}`]
    case 'assistant': {
      const calls = (message.toolCalls ?? []).map(
        ({ toolName, arguments: args }) => `${side} calls ${callText(toolName, args)}`,
      )
      const mark =
        delivery === 'refused' ? ' (not delivered)' : delivery === 'pending' ? ' (unverified)' : ''
      return [
        ...(message.text === '' ? [] : [`${side}${mark}: ${indented(message.text)}`]),
        ...calls,
      ]
    }
    case 'tool_result':
      return message.results.map(
        ({ result, isError }) => `  ${callText(isError ? 'error' : 'result', result)}`,
      )
  }
}
