import { createInterface, type Interface } from 'node:readline/promises'
import { text as readAll } from 'node:stream/consumers'
import { closest, isPlainObject, type JsonObject, tryParseJson } from '@skein/base'
import { callText } from '@skein/base/safe-text'
import type { SendMessage, ThreadInfo, WaitingItem } from '@skein/runtime'
import type { Client } from '@skein/server/client'
import { contextText, type ShowOptions, showRun, timeoutOf } from '../follow/show-run.ts'
import { findThreadByPrefix } from '../connect/short-ids.ts'
import { withConnection } from '../connect/connect.ts'
import {
  type Command,
  defineCommand,
  ExitCode,
  RUN_OPTIONS,
  usageError,
} from '../terminal/command.ts'
import type { Output } from '../terminal/output.ts'
import { riskText, sentLines } from '../terminal/waiting-text.ts'

/** `skein chat` */
export const chat: Command = defineCommand({
  operands: [{ name: 'agent', description: 'Name of the agent.' }],
  options: {
    thread: { type: 'string', value: 'id', description: 'Continues this thread.' },
    ...RUN_OPTIONS,
  },
  examples: ['skein chat support', 'echo "Refund O-7, please." | skein chat support'],
  async run({ values, operands: [agent = ''], output }) {
    const options = { ...values, timeoutMs: timeoutOf(values), isMarkdown: true }
    return withConnection(
      values,
      output,
      async ({ client }) => {
        const thread =
          values.thread === undefined ? undefined : await findThreadByPrefix(client, values.thread)
        const { sides } = await client.agents.get(thread?.agent ?? agent)
        const models = [...new Set(sides.flatMap((side) => side.models))]
        return new Chat(client, { agent, thread, models }, output, options).talk()
      },
      { works: true },
    )
  },
})

/** What a person can type instead of a message. */
const SLASH: Readonly<Record<string, string>> = {
  '/help': 'shows this list',
  '/decide': 'asks again about calls that wait for approval',
  '/new': 'begins another conversation',
  '/thread': 'shows the id of this conversation',
  '/quit': 'ends the chat, as an empty line does',
}

/** A conversation line by line, with a person at a terminal or with lines that come from a pipe. */
class Chat {
  readonly #client: Client
  readonly #agent: string
  readonly #models: readonly string[]
  readonly #output: Output
  readonly #options: ShowOptions
  readonly #isPerson: boolean = process.stdin.isTTY === true
  /** The thread is created with the first message, so that a chat without a message leaves no thread behind. */
  #thread: ThreadInfo | undefined
  #after: string | undefined
  #leave: (() => void) | undefined
  #code: ExitCode = ExitCode.Done

  constructor(
    client: Client,
    with_: {
      readonly agent: string
      readonly thread: ThreadInfo | undefined
      readonly models: readonly string[]
    },
    output: Output,
    options: ShowOptions,
  ) {
    this.#client = client
    this.#agent = with_.agent
    this.#thread = with_.thread
    this.#models = with_.models
    this.#output = output
    this.#options = options
  }

  async talk(): Promise<ExitCode> {
    if (this.#isPerson) {
      const model = this.#models.length > 0 ? ` (${this.#models.join(', ')})` : ''
      const thread = this.#thread ? `, thread ${this.#thread.id}` : ''
      this.#output.say(`${this.#agent}${model}${thread}. /help lists commands; an empty line ends.`)
    }
    const lines = createInterface({
      input: process.stdin,
      output: this.#isPerson ? process.stderr : undefined,
    })
    // While readline reads from the terminal, Ctrl-C is an event of readline and not a signal to the process.
    lines.on('SIGINT', () => (this.#leave ? this.#leave() : void process.emit('SIGINT')))
    try {
      for await (const line of this.#read(lines)) {
        if (this.#isPerson && line.startsWith('/') && !line.startsWith('//')) {
          if (!(await this.#command(line.trim(), lines))) break
          continue
        }
        // `//` at the start stands for one slash, so that a message can begin with a slash.
        await this.#say(this.#isPerson && line.startsWith('//') ? line.slice(1) : line)
        await this.#decideAll(lines)
        // No one can approve a call through a pipe, so the first turn that does not succeed ends the chat.
        if (!this.#isPerson && this.#code !== ExitCode.Done) break
      }
    } finally {
      lines.close()
    }
    if (this.#isPerson && this.#thread)
      this.#output.say(`Continue with: skein chat ${this.#agent} --thread ${this.#thread.id}`)
    return this.#code
  }

  /** Carries out a command, a line that begins with a slash. Returns false if the chat must end. */
  async #command(line: string, lines: Interface): Promise<boolean> {
    switch (line) {
      case '/quit':
      case '/exit':
        return false
      case '/help':
        for (const [name, what] of Object.entries(SLASH))
          this.#output.say(`  ${name.padEnd(8)} ${what}`)
        this.#output.say('  //…      sends a message that begins with a slash')
        return true
      case '/new':
        this.#thread = this.#after = undefined
        this.#output.say('A new conversation begins with your next message.')
        return true
      case '/thread':
        this.#output.say(this.#thread?.id ?? 'The thread is created with your first message.')
        return true
      case '/decide':
        if (!(await this.#decideAll(lines, true))) this.#output.say('Nothing waits for approval.')
        return true
      default: {
        const suggestion = closest(line, Object.keys(SLASH), 2)
        const hint = suggestion === undefined ? '/help lists them.' : `Did you mean ${suggestion}?`
        this.#output.say(`There is no command ${line}. ${hint} Nothing was sent.`)
        return true
      }
    }
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
    const abort = new AbortController()
    const leave = (this.#leave = (): void => abort.abort())
    lines.once('close', leave)
    try {
      return await lines.question(this.#output.prompt(this.#output.paint('bold', prompt)), {
        signal: abort.signal,
      })
    } catch {
      return undefined
    } finally {
      this.#leave = undefined
      lines.off('close', leave)
    }
  }

  async #say(text: string): Promise<void> {
    const { threads } = this.#client
    if (!this.#thread) {
      this.#thread = await threads.create({ agent: this.#agent, message: text })
      return this.#turn(undefined)
    }
    const before = await threads.get(this.#thread.id)
    await threads.send(this.#thread.id, text)
    await this.#turn(before)
  }

  async #turn(before: ThreadInfo | undefined): Promise<void> {
    const { code, followed } = await showRun(this.#client, this.#thread!, this.#output, {
      ...this.#options,
      isConversation: this.#isPerson,
      before,
      after: this.#after,
    })
    this.#code = code
    this.#after = followed?.after
    const model = followed?.tally.model
    if (this.#isPerson && model)
      this.#output.say(this.#output.paint('dim', await contextText(model)))
  }

  /** Asks about waiting calls until none is left, or until the person leaves the rest for later. */
  async #decideAll(lines: Interface, isAsked = false): Promise<boolean> {
    let any = false
    while (this.#isPerson && (isAsked || this.#code === ExitCode.Waiting)) {
      if (!(await this.#decide(lines))) break
      any = true
    }
    return any
  }

  /** Asks about the next waiting call. Returns false if there is none, or if the person does not decide. */
  async #decide(lines: Interface): Promise<boolean> {
    if (!this.#thread) return false
    const before = await this.#client.threads.get(this.#thread.id)
    const waiting = await this.#client.inbox.list({ rootId: before.rootId })
    const item = waiting.find(({ kind }) => kind === 'approval')
    if (!item) return false
    const about = riskText(item)
    this.#output.say(
      `Approve ${callText(item.toolName, item.arguments)}?${about === '' ? '' : ` (${about})`}`,
    )
    for (const line of sentLines(item)) this.#output.say(line)
    for (;;) {
      const answer = await this.#ask(
        lines,
        '[a]pprove, [d]eny, [e]dit the arguments, Enter: later > ',
      )
      const word = answer?.trim().toLowerCase()
      if (answer === undefined || word === undefined || word === '') return false
      const isDecided = await this.#choose(word, answer, item, lines)
      if (isDecided) break
      // Other text decides nothing, so that a message typed here is never taken for a denial.
      this.#output.say('Nothing was decided. Type a, d or e, or Enter for later.')
    }
    await this.#turn(before)
    return true
  }

  /** Carries out a choice about a waiting call. Returns false if the text was no choice. */
  async #choose(
    word: string,
    answer: string,
    item: WaitingItem,
    lines: Interface,
  ): Promise<boolean> {
    const { inbox } = this.#client
    const value = answer.trim().startsWith('{') ? answer : undefined
    if (/^(?:a|approve|y|yes)$/.test(word)) {
      await inbox.approve({ ...item, digest: item.request?.digest })
      return true
    }
    if (/^(?:d|deny|n|no)$/.test(word)) {
      const reason = (await this.#ask(lines, 'Reason, for the agent > '))?.trim() ?? ''
      if (reason !== '') await inbox.deny({ ...item, reason })
      return reason !== ''
    }
    if (word !== 'e' && word !== 'edit' && value === undefined) return false
    const text = value ?? (await this.#ask(lines, 'All arguments, as JSON > ')) ?? ''
    const args = tryParseJson(text)
    if (!isPlainObject(args)) return false
    await inbox.approve({ ...item, with: args as JsonObject, digest: item.request?.digest })
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
      description: 'What the message does if the --thread is busy. Default: enqueue.',
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
    if (given === undefined && /\s/.test(agent))
      throw usageError(
        `"${agent}" is not the name of an agent.`,
        `Name the agent first: skein run <agent> "${agent}"`,
      )
    if (given === undefined && process.stdin.isTTY)
      throw usageError(
        '<text> is missing.',
        'Give it as an argument, or `-` to read standard input.',
      )
    const isPiped = given === undefined || given === '-'
    const text = isPiped ? (await readAll(process.stdin)).trim() : given
    if (isPiped && text === '') throw usageError('<text> is empty.', 'Standard input is empty.')
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
