import { readFile } from 'node:fs/promises'
import { text as readAll } from 'node:stream/consumers'
import { createInterface } from 'node:readline/promises'
import { parseEnv } from 'node:util'
import { isPlainObject, type JsonObject, tryParseJson } from '@skein/base'
import { callText } from '@skein/base/safe-text'
import { FOUND_EFFECTS, type WaitingItem } from '@skein/runtime'
import type { Client } from '@skein/server/client'
import { type ConnectTarget, withConnection } from '../connect/connect.ts'
import { findWaiting } from '../connect/short-ids.ts'
import { showRun, timeOf } from '../follow/show-run.ts'
import {
  type Command,
  CommandError,
  defineCommand,
  ExitCode,
  JSON_OPTION,
  type Operand,
  SERVER_OPTIONS,
  type Switch,
  THREAD_OPERAND,
  usageError,
} from '../terminal/command.ts'
import type { Output } from '../terminal/output.ts'
import { lineText } from '../terminal/table.ts'
import { riskText, sentLines } from '../terminal/waiting-text.ts'
import { timeAgo } from '../terminal/format.ts'

/** `skein inbox` */
export const inbox: Command = defineCommand({
  operands: [],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: ['skein inbox', "skein inbox --json | jq '.waiting[0]'"],
  async run({ values, output }) {
    return withConnection(values, output, async ({ client }) => {
      const waiting = await client.inbox.list()
      if (values.json) output.json({ waiting })
      else if (waiting.length === 0) output.say('Nothing waits for a person.')
      else
        for (const item of waiting) {
          const { threadId, interruptId, path, kind, openedAt } = item
          const about = [kind, riskText(item), timeAgo(openedAt)].filter((one) => one !== '')
          output.line(`${threadId} ${interruptId}`)
          const asks = item.variables
            ? `needs ${item.variables.map(({ name, type }) => `${name} (${type})`).join(', ')} for`
            : 'asks:'
          const who = lineText(path.join(' › '))
          output.line(`  ${who} ${lineText(asks)} ${callOf(item)} (${about.join(', ')})`)
          // What a call in doubt is about is not in its arguments: why it is asked, and what the answer decides.
          const { question } = isPlainObject(item.question) ? item.question : {}
          if (typeof question === 'string') output.line(`  ${lineText(question)}`)
          for (const line of sentLines(item)) output.line(`  ${line}`)
          if (item.request) output.line(`  digest ${shortDigest(item.request.digest)}`)
        }
      return ExitCode.Done
    })
  },
})

const DECISION_OPERANDS: readonly Operand[] = [
  THREAD_OPERAND,
  {
    name: 'interrupt',
    description: 'Id of what waits, or enough of it; not needed if there is only one.',
    isOptional: true,
  },
]

const FOLLOW_OPTION: { readonly follow: Switch } = {
  follow: { type: 'boolean', description: 'Shows what the thread does next.' },
}

/** `skein approve` */
export const approveCommand: Command = defineCommand({
  operands: DECISION_OPERANDS,
  options: {
    reason: { type: 'string', value: 'text', description: 'Recorded with the decision.' },
    with: {
      type: 'string',
      value: 'json',
      description: 'Approves the call with these arguments instead of its own.',
    },
    'grant-for': {
      type: 'string',
      value: 'time',
      description: 'Also allows this tool in this thread for this long, e.g. 30m, 8h.',
    },
    yes: {
      type: 'boolean',
      short: 'y',
      description:
        'Approves without asking. Where there is no terminal, this or --digest is required.',
    },
    digest: {
      type: 'string',
      value: 'digest',
      description:
        'Approves without asking, but only the call with this digest, or this beginning of one. `skein inbox` shows it.',
    },
    ...FOLLOW_OPTION,
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: [
    'skein approve 7f3a call_2 --reason "Lamp arrived broken"',
    'skein approve 7f3a --digest 3fa9c1d2 --follow',
  ],
  async run(input) {
    const { reason, with: text } = input.values
    const grantForMs = timeOf('grant-for', input.values['grant-for'])
    const args = text === undefined ? undefined : tryParseJson(text)
    if (text !== undefined && !isPlainObject(args))
      throw usageError('--with takes a JSON object.', 'Give all arguments of the call.')
    const replacement = args as JsonObject | undefined // checked above
    const decide = (client: Client, { threadId, interruptId, request }: WaitingItem) =>
      client.inbox.approve({
        threadId,
        interruptId,
        reason,
        with: replacement,
        grantForMs,
        digest: request?.digest, // of the call that the command shows
      })
    const { yes = false, digest } = input.values
    const agree = (item: WaitingItem): Promise<boolean> =>
      agreesTo(item, { isYes: yes, digest, changed: replacement, output: input.output })
    return decideOne(input, 'approve', decide, { changed: replacement, agree })
  },
})

/** `skein deny` */
export const denyCommand: Command = defineCommand({
  operands: DECISION_OPERANDS,
  options: {
    reason: { type: 'string', value: 'text', description: 'Sent to the agent. Required.' },
    ...FOLLOW_OPTION,
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: [
    'skein deny 7f3a --reason "Past 30 days"',
    'skein deny 7f3a call_2 --reason "No" --json',
  ],
  async run(input) {
    const { reason } = input.values
    if (reason === undefined) throw usageError('A denial needs a reason.', 'Give it with --reason.')
    return decideOne(input, 'deny', (client, { threadId, interruptId }) =>
      client.inbox.deny({ threadId, interruptId, reason }),
    )
  },
})

/** `skein settle` */
export const settleCommand: Command = defineCommand({
  operands: DECISION_OPERANDS,
  options: {
    found: {
      type: 'string',
      value: 'applied|absent|unknown',
      description: 'Whether the call had its effect before the process died. Required.',
    },
    ...FOLLOW_OPTION,
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: ['skein settle 7f3a --found applied', 'skein settle 7f3a call_2 --found absent'],
  async run(input) {
    const effect = FOUND_EFFECTS.find((known) => known === input.values.found)
    if (effect === undefined)
      throw usageError(
        'Say whether the call had its effect.',
        `Give --found with one of ${FOUND_EFFECTS.join(', ')}.`,
      )
    return decideOne(input, 'settle', (client, item) => client.inbox.settle(item, effect))
  },
})

/** `skein provide` */
export const provideCommand: Command = defineCommand({
  operands: DECISION_OPERANDS,
  options: {
    file: {
      type: 'string',
      value: 'path',
      description: 'Lines such as NAME=value. Default: the standard input.',
    },
    ...FOLLOW_OPTION,
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: ['skein provide 7f3a --file values.env', 'pass show vault | skein provide 7f3a'],
  async run(input) {
    const { file } = input.values
    if (file === undefined && process.stdin.isTTY)
      throw usageError(
        'The values come from a file or a pipe, so that no secret is kept in the history of a shell.',
        'Give --file, or pipe lines such as NAME=value.',
      )
    const text = file === undefined ? await readAll(process.stdin) : await readFile(file, 'utf8')
    const values = parseEnv(text) as Record<string, string> // it returns no other values
    return decideOne(input, 'provide', async (client, { threadId, interruptId }) => {
      await client.threads.variables.provide(threadId, interruptId, values)
    })
  },
})

interface DecisionInput {
  readonly values: ConnectTarget & { readonly json?: boolean; readonly follow?: boolean }
  readonly operands: readonly string[]
  readonly output: Output
}

/**
 * Finds the call, sends the decision, and with `--follow` shows what the thread does next. Without a
 * server it always follows: the thread runs in this process and stops when this process ends.
 */
function decideOne(
  { values, operands, output }: DecisionInput,
  verb: keyof typeof VERBS,
  decide: (client: Client, item: WaitingItem) => Promise<void>,
  {
    changed,
    agree,
  }: {
    readonly changed?: JsonObject
    /** Shows the call before anything is sent; false leaves it waiting. */
    readonly agree?: (item: WaitingItem) => Promise<boolean>
  } = {},
): Promise<ExitCode> {
  return withConnection(
    values,
    output,
    async ({ client, url }) => {
      const item = await findWaiting(client, VERBS[verb].kind, operands)
      const { threadId, interruptId, rootId } = item
      if (agree && !(await agree(item))) {
        output.say('Nothing was decided; the call still waits.')
        return ExitCode.Waiting
      }
      const before = await client.threads.get(rootId)
      await decide(client, item)
      output.say(`${VERBS[verb].done}: ${callText(item.toolName, changed ?? item.arguments)}`)
      if (!changed) for (const line of sentLines(item)) output.say(line)
      if (values.follow || url === undefined)
        return (await showRun(client, before, output, { ...values, before })).code
      if (values.json) output.json({ threadId, interruptId, type: verb })
      return ExitCode.Done
    },
    { works: true, creates: false },
  )
}

/** How much of a digest is shown, and the least of it that names a call. */
const DIGEST_LENGTH = 12
const MIN_DIGEST_LENGTH = 8

function shortDigest(digest: string): string {
  return digest.replace(/^sha256:/, '').slice(0, DIGEST_LENGTH)
}

/**
 * Whether the person agrees to the call: they have named its digest, have said yes beforehand, or say so now that they
 * see it. Throws where there is no one to ask.
 */
async function agreesTo(
  item: WaitingItem,
  {
    isYes,
    digest,
    changed,
    output,
  }: {
    readonly isYes: boolean
    readonly digest: string | undefined
    readonly changed: JsonObject | undefined
    readonly output: Output
  },
): Promise<boolean> {
  const { request, toolName, path } = item
  const own = request?.digest.replace(/^sha256:/, '')
  if (digest !== undefined) {
    const hash = digest.replace(/^sha256:/, '')
    if (hash.length >= MIN_DIGEST_LENGTH && own?.startsWith(hash)) return true
    throw new CommandError('The call that waits has another digest. Nothing was decided.', {
      code: 'DIGEST_DIFFERS',
      hint: `Give at least ${MIN_DIGEST_LENGTH} characters of it; \`skein inbox\` shows what waits now.`,
    })
  }
  if (isYes) return true
  const call = callText(toolName, changed ?? item.arguments)
  if (process.stdin.isTTY !== true)
    throw usageError(
      `Nothing was decided about ${call}: without a terminal there is no one to ask.`,
      own === undefined
        ? 'Give --yes.'
        : `Give --digest ${shortDigest(own)}, which approves this call only, or --yes.`,
    )
  const about = riskText(item)
  output.say(`${lineText(path.join(' › '))} asks: ${call}${about === '' ? '' : ` (${about})`}`)
  if (changed) output.say(`instead of: ${callOf(item)}`)
  else for (const line of sentLines(item)) output.say(line)
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const isForGood = item.isIrreversible === true
    const word = isForGood ? lineText(toolName) : 'yes'
    const question = isForGood
      ? `This cannot be undone. Type ${word} to approve, Enter: not now > `
      : 'Type yes to approve, Enter: not now > '
    const answer = await lines.question(output.prompt(question)).catch(() => '')
    return answer.trim() === word || (!isForGood && answer.trim().toLowerCase() === 'y')
  } finally {
    lines.close()
  }
}

/** For each command, the kind of waiting item that it answers, and the word for the answer in the output. */
const VERBS = {
  approve: { kind: 'approval', done: 'approved' },
  deny: { kind: 'approval', done: 'denied' },
  settle: { kind: 'in_doubt', done: 'settled' },
  provide: { kind: 'variables', done: 'given' },
} as const

function callOf({ toolName, arguments: args }: WaitingItem): string {
  return callText(toolName, args)
}
