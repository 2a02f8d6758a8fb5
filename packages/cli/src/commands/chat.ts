import { type Interface, createInterface } from 'node:readline/promises'
import { text as readAll } from 'node:stream/consumers'
import { type JsonObject, isPlainObject, tryParseJson } from '@skein/base'
import { callText } from '@skein/base/safe-text'
import type { SendMessage, ThreadInfo } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import { findThreadByPrefix, withConnection } from '../connect/connect.ts'
import { type ShowOptions, showRun, timeoutOf } from '../follow/show-run.ts'
import {
  type Command,
  ExitCode,
  RUN_OPTIONS,
  defineCommand,
  usageError,
} from '../terminal/command.ts'
import type { Output } from '../terminal/output.ts'

/** `skein chat` */
export const chat: Command = defineCommand({
  operands: [{ name: 'agent', description: 'Name of the agent.' }],
  options: {
    thread: { type: 'string', value: 'id', description: 'Continues this thread.' },
    ...RUN_OPTIONS,
  },
  examples: ['skein chat support', 'echo "Refund O-7, please." | skein chat support'],
  async run({ values, operands: [agent = ''], output }) {
    const options = { ...values, timeoutMs: timeoutOf(values) }
    return withConnection(
      values,
      output,
      async ({ client }) => {
        const found =
          values.thread === undefined ? undefined : await findThreadByPrefix(client, values.thread)
        const thread = found ?? (await client.threads.create({ agent }))
        return new Chat(client, thread, output, options).talk()
      },
      { works: true },
    )
  },
})

/** A conversation, line by line, with a person at a terminal or with lines from a pipe. */
class Chat {
  readonly #client: Client
  readonly #thread: ThreadInfo
  readonly #output: Output
  readonly #options: ShowOptions
  readonly #isPerson: boolean = process.stdin.isTTY === true
  #after: string | undefined
  #leave: (() => void) | undefined
  #code: ExitCode = ExitCode.Done

  constructor(client: Client, thread: ThreadInfo, output: Output, options: ShowOptions) {
    this.#client = client
    this.#thread = thread
    this.#output = output
    this.#options = options
  }

  async talk(): Promise<ExitCode> {
    const { id, agent } = this.#thread
    if (this.#isPerson) this.#output.say(`${agent}, thread ${id}. An empty line ends the chat.`)
    const lines = createInterface({
      input: process.stdin,
      output: this.#isPerson ? process.stderr : undefined,
    })
    // While readline owns the terminal, Ctrl-C is an event of readline and not a signal of the process.
    lines.on('SIGINT', () => (this.#leave ? this.#leave() : void process.emit('SIGINT')))
    try {
      for await (const line of this.#read(lines)) {
        const before = await this.#client.threads.get(id)
        await this.#client.threads.send(id, line)
        await this.#turn(before)
        while (this.#isPerson && this.#code === ExitCode.Waiting)
          if (!(await this.#decide(lines))) break
        // Nobody can approve or resume through a pipe, so the first turn that does not succeed ends the chat.
        if (!this.#isPerson && this.#code !== ExitCode.Done) break
      }
    } finally {
      lines.close()
    }
    if (this.#isPerson) this.#output.say(`Continue with: skein chat ${agent} --thread ${id}`)
    return this.#code
  }

  async *#read(lines: Interface): AsyncGenerator<string, void, undefined> {
    if (!this.#isPerson) {
      for await (const line of lines) if (line.trim() !== '') yield line
      return
    }
    for (;;) {
      const line = await this.#ask(lines, '> ')
      if (line === undefined || line.trim() === '') return
      yield line
    }
  }

  /** Asks for a line; returns undefined at the end of input and after Ctrl-C. */
  async #ask(lines: Interface, prompt: string): Promise<string | undefined> {
    const left = new AbortController()
    const leave = (this.#leave = (): void => left.abort())
    lines.once('close', leave)
    try {
      return await lines.question(this.#output.prompt(this.#output.paint('bold', prompt)), {
        signal: left.signal,
      })
    } catch {
      return undefined
    } finally {
      this.#leave = undefined
      lines.off('close', leave)
    }
  }

  async #turn(before: ThreadInfo): Promise<void> {
    const { code, followed } = await showRun(this.#client, this.#thread, this.#output, {
      ...this.#options,
      before,
      after: this.#after,
    })
    this.#code = code
    this.#after = followed?.after
  }

  /** Asks about the next waiting call. Returns false if there is none, or if the person does not decide. */
  async #decide(lines: Interface): Promise<boolean> {
    const before = await this.#client.threads.get(this.#thread.id)
    const waiting = await this.#client.inbox.list({ rootId: before.rootId })
    const item = waiting.find(({ kind }) => kind === 'approval')
    if (!item) return false
    const answer = await this.#ask(
      lines,
      `Approve ${callText(item.toolName, item.arguments)}? [y, {…} with other arguments, or a reason not to] `,
    )
    if (answer === undefined || answer.trim() === '') return false
    const { inbox } = this.#client
    const args = answer.trim().startsWith('{') ? tryParseJson(answer) : undefined
    if (/^y(es)?$/i.test(answer.trim())) await inbox.approve(item)
    else if (isPlainObject(args))
      await inbox.approve({ ...item, with: args as JsonObject, digest: item.request?.digest })
    else await inbox.deny({ ...item, reason: answer.trim() })
    await this.#turn(before)
    return true
  }
}

const IF_BUSY = ['enqueue', 'reject', 'cut', 'restart'] as const satisfies readonly NonNullable<
  SendMessage['ifBusy']
>[]

/** `skein run` */
export const run: Command = defineCommand({
  operands: [
    { name: 'agent', description: 'Name of the agent.' },
    {
      name: 'text',
      description: 'The message; `-` reads it from standard input.',
      isOptional: true,
    },
  ],
  options: {
    thread: { type: 'string', value: 'id', description: 'Sends the message to this thread.' },
    'if-busy': {
      type: 'string',
      value: IF_BUSY.join('|'),
      description: 'What the message does to a --thread that works or waits. Default: enqueue.',
    },
    ...RUN_OPTIONS,
  },
  examples: ['skein run support "Where is order O-7?"', 'git diff | skein run reviewer - --json'],
  async run({ values, operands: [agent = '', given], output }) {
    const timeoutMs = timeoutOf(values)
    const ifBusy = IF_BUSY.find((known) => known === values['if-busy'])
    if (values['if-busy'] !== undefined && (!ifBusy || values.thread === undefined))
      throw usageError(
        '--if-busy says what the message does to a thread that is busy.',
        `Give --thread, and one of ${IF_BUSY.join(', ')}.`,
      )
    if (given === undefined && process.stdin.isTTY)
      throw usageError(
        '<text> is missing.',
        'Give it as an argument, or `-` to read standard input.',
      )
    const isPiped = given === undefined || given === '-'
    const text = isPiped ? (await readAll(process.stdin)).trim() : given
    if (isPiped && text === '') throw usageError('<text> is empty.', 'Standard input held no text.')
    return withConnection(
      values,
      output,
      async ({ client }) => {
        const before =
          values.thread === undefined ? undefined : await findThreadByPrefix(client, values.thread)
        if (before) await client.threads.send(before.id, { text, ifBusy })
        const thread = before ?? (await client.threads.create({ agent, message: text }))
        return (await showRun(client, thread, output, { ...values, timeoutMs, before })).code
      },
      { works: true },
    )
  },
})
