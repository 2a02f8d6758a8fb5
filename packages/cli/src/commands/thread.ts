import { readFile } from 'node:fs/promises'
import { text as readAll } from 'node:stream/consumers'
import { messageFromJSON } from '@skein/ai'
import { isPlainObject } from '@skein/base'
import { callText } from '@skein/base/safe-text'
import type { ThreadInfo } from '@skein/runtime'
import type { Client, WireMessage } from '@skein/server/client'
import { findThreadByPrefix, shortIdsOf, withConnection } from '../connect/connect.ts'
import {
  type Command,
  CommandError,
  ExitCode,
  JSON_OPTION,
  SERVER_OPTIONS,
  THREAD_OPERAND,
  defineCommand,
  usageError,
} from '../terminal/command.ts'
import {
  type Output,
  costText,
  indented,
  lineText,
  textTable,
  timeAgo,
  waitingLines,
  undoText,
} from '../terminal/output.ts'
import { byteText } from '../terminal/progress.ts'
import { answerText } from './thread-tail.ts'

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
        output.say('No threads yet. `skein run <agent> "text"` makes one.')
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
        const messages = await listOf(messagesOf(client, thread.id))
        const children = await listOf(childrenOf(client, thread.id))
        output.json({ thread, messages, children, decisions })
        return ExitCode.Done
      }
      const { id, agent, lifecycle, tokens, tree, seq } = thread
      const own = tree.tokens === tokens ? '' : ` (${tokens} without subagents)`
      const spent = `${tree.tokens} tokens${own} · ${costText(tree.costUsd)}`
      const headline = `${id} · ${agent} · ${lifecycle} · ${spent} · ${seq} events`
      output.line(output.paint('dim', headline))
      for await (const message of messagesOf(client, thread.id))
        for (const line of linesOf(message)) output.line(line)
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

async function listOf<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
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
  const opened = new Map<string, unknown>()
  const calls = new Map<string, string>()
  const decisions: Decision[] = []
  for (let after = 0; ;) {
    const page = await threads.events(id, { after, limit: 1000 })
    for (const { event } of page) {
      if (event.type === 'message_added' && event.message.type === 'assistant')
        for (const call of event.message.toolCalls ?? [])
          calls.set(call.toolCallId, callText(call.toolName, call.arguments))
      if (event.type === 'interrupt_opened') opened.set(event.interrupt.id, event.interrupt)
      const interrupt = event.type === 'interrupt_answered' && opened.get(event.interruptId)
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
function linesOf({ message: stored, side, subagentId, delivery }: WireMessage): string[] {
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

/** `skein thread stop` */
export const threadStop: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: {
    'after-step': { type: 'boolean', description: 'Lets the running step finish first.' },
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread stop 7f3a', 'skein thread stop 7f3a --after-step'],
  async run({ values, operands: [text = ''], output }) {
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThreadByPrefix(client, text)
      await client.threads.stop(id, { afterStep: values['after-step'] === true })
      if (values.json) output.json(await client.threads.get(id))
      else output.say(`Stopping ${id}. Continue with: skein thread resume ${id}`)
      return ExitCode.Done
    })
  },
})

/** `skein thread fork` */
export const threadFork: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: {
    'up-to': {
      type: 'string',
      value: 'message',
      description: 'Id of the last message to copy. Default: all messages.',
    },
    title: { type: 'string', value: 'text', description: 'Title of the new thread.' },
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread fork 7f3a', 'skein thread fork 7f3a --title "Another way" --json'],
  async run({ values, operands: [text = ''], output }) {
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThreadByPrefix(client, text)
      const options = { upTo: values['up-to'], title: values.title }
      return printNew(await client.threads.fork(id, options), values, output)
    })
  },
})

/** `skein thread export` */
export const threadExport: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: {
    format: {
      type: 'string',
      value: 'jsonl|thread',
      description:
        '`jsonl`: the log, which `import` reads. `thread`: a ThreadProtocol document. Default: jsonl.',
    },
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread export 7f3a > thread.jsonl', 'skein thread export 7f3a --format thread'],
  async run({ values, operands: [text = ''], output }) {
    const { format = 'jsonl' } = values
    if (format !== 'jsonl' && format !== 'thread')
      throw usageError(`--format is jsonl or thread, not "${format}".`)
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThreadByPrefix(client, text)
      if (format === 'thread') output.json(await client.threads.document(id))
      else output.jsonLines((await client.threads.export(id)).trimEnd())
      return ExitCode.Done
    })
  },
})

/** `skein thread import` */
export const threadImport: Command = defineCommand({
  operands: [{ name: 'file', description: 'An exported log; `-` reads standard input.' }],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: [
    'skein thread import thread.jsonl',
    'skein thread export 7f3a | skein thread import -',
  ],
  async run({ values, operands: [file = '-'], output }) {
    const reading = file === '-' ? readAll(process.stdin) : readFile(file, 'utf8')
    const lines = await reading.catch((cause: unknown) => {
      throw new CommandError(`${file} cannot be read.`, {
        code: 'FILE_UNREADABLE',
        hint: 'Name a file that `skein thread export` has written; `-` reads standard input.',
        cause,
      })
    })
    return withConnection(
      values,
      output,
      async ({ client }) => {
        output.status(`importing ${byteText(Buffer.byteLength(lines))}`)
        return printNew(await client.threads.import(lines), values, output)
      },
      { creates: true },
    )
  },
})

/** Prints a thread that was just created. */
function printNew(thread: ThreadInfo, { json }: { json?: boolean }, output: Output): ExitCode {
  if (json) output.json(thread)
  else output.line(thread.id)
  return ExitCode.Done
}
