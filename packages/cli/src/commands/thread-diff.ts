import type { ThreadInfo } from '@skein/runtime'
import type { Client } from '@skein/server/client'
import type { ViewItem } from '@skein/runtime/view'
import { SkeinError } from '@skein/base'
import { safeText } from '@skein/base/safe-text'
import { findThreadByPrefix } from '../connect/short-ids.ts'
import { withConnection } from '../connect/connect.ts'
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
import type { Output } from '../terminal/output.ts'
import { costText, errorText, formatDuration } from '../terminal/format.ts'
import { lineText } from '../terminal/table.ts'

/** One thread of the comparison. */
interface Side {
  readonly thread: ThreadInfo
  readonly items: readonly ViewItem[]
  /** How long the models of this thread took to answer, without those of its subagents. */
  readonly modelMs: number
}

interface Pair<T> {
  readonly before?: T
  readonly after?: T
  readonly isSame: boolean
}

type Align = <T>(before: readonly T[], after: readonly T[]) => readonly Pair<T>[]

/** Lines are cut to this many characters; of one step at most `MAX_LINES` are shown, the rest are counted. */
const MAX_LINE_CHARS = 2000
const MAX_LINES = 200
/** How many equal lines are shown on each side of a difference. */
const CONTEXT_LINES = 3

/** `skein thread diff` */
export const threadDiff: Command = defineCommand({
  operands: [
    THREAD_OPERAND,
    {
      name: 'other',
      description: 'The thread to compare with. Default: the thread that this one was forked from.',
      isOptional: true,
    },
  ],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: ['skein thread diff 7f3a 91c2', 'skein thread diff 91c2 --json | jq .deltas'],
  async run({ values, operands: [text = '', other], output }) {
    try {
      return await withConnection(values, output, async ({ client }) => {
        const thread = await findThreadByPrefix(client, text)
        const origin = other ?? thread.forkedFrom?.threadId
        if (origin === undefined)
          throw usageError(`${text} is not a fork.`, 'Name the thread to compare it with.')
        const second = await findThreadByPrefix(client, origin)
        // The origin of a fork is shown on the left, because it is older.
        const [left, right] = other === undefined ? [second, thread] : [thread, second]
        return compare(await readSide(client, left), await readSide(client, right), output, values)
      })
    } catch (error) {
      throw asTrouble(error)
    }
  },
})

/** As with the command `diff`, exit code 1 means "they differ", so a failure must end with another code. */
function asTrouble(error: unknown): CommandError {
  const { code = 'UNKNOWN', hint } = SkeinError.is(error) ? error : {}
  return new CommandError(errorText(error), { code, hint, exitCode: ExitCode.Usage, cause: error })
}

async function readSide({ threads }: Client, thread: ThreadInfo): Promise<Side> {
  const { ViewFold } = await import('@skein/runtime/view')
  const fold = new ViewFold()
  let modelMs = 0
  for (let after = 0; ;) {
    const page = await threads.events(thread.id, { after, limit: 1000 })
    for (const { seq, event } of page) {
      fold.push(event, seq)
      if (event.type === 'model_answered') modelMs += event.durationMs
    }
    if (page.length < 1000) return { thread, items: fold.view.items, modelMs }
    after = page.at(-1)!.seq
  }
}

async function compare(
  before: Side,
  after: Side,
  output: Output,
  { json }: { readonly json?: boolean },
): Promise<ExitCode> {
  const { alignSteps } = await import('@skein/runtime/view')
  const steps = alignSteps(before.items, after.items)
  const first = steps.findIndex(({ isSame }) => !isSame)
  const [a, b] = [sumsOf(before), sumsOf(after)]
  if (json)
    output.json({
      isSame: first < 0,
      firstDifference: first < 0 ? null : first,
      before: { threadId: before.thread.id, ...a },
      after: { threadId: after.thread.id, ...b },
      deltas: {
        events: b.events - a.events,
        tokens: b.tokens - a.tokens,
        costUsd: a.costUsd === null || b.costUsd === null ? null : b.costUsd - a.costUsd,
        modelMs: b.modelMs - a.modelMs,
      },
      steps,
    })
  else {
    const name = ({ id, agent, lifecycle, title }: ThreadInfo): string =>
      [id, lineText(agent), lifecycle, ...(title == null ? [] : [lineText(title)])].join(' · ')
    output.line(output.paint('red', `--- ${name(before.thread)}`))
    output.line(output.paint('green', `+++ ${name(after.thread)}`))
    showSteps(steps, first, alignSteps, output)
    for (const line of deltaLines(a, b)) output.line(line)
  }
  return first < 0 ? ExitCode.Done : ExitCode.Failed
}

interface Sums {
  readonly events: number
  /** Of the thread and its subagents. */
  readonly tokens: number
  readonly costUsd: number | null
  readonly modelMs: number
}

function sumsOf({ thread: { seq, tree }, modelMs }: Side): Sums {
  return { events: seq, tokens: tree.tokens, costUsd: tree.costUsd, modelMs }
}

function deltaLines(a: Sums, b: Sums): readonly string[] {
  const delta = (from: number, to: number, text: (value: number) => string): string => {
    const sign = to > from ? '+' : '-'
    return `${text(from)} -> ${text(to)} (${to === from ? 'the same' : sign + text(Math.abs(to - from))})`
  }
  const cost = (value: number): string => costText(value).replace('cost ', '')
  const time = (ms: number): string => (ms < 10_000 ? `${Math.round(ms)} ms` : formatDuration(ms))
  return [
    `tokens ${delta(a.tokens, b.tokens, String)}`,
    a.costUsd === null || b.costUsd === null
      ? 'cost unknown'
      : `cost ${delta(a.costUsd, b.costUsd, cost)}`,
    `time of models ${delta(a.modelMs, b.modelMs, time)}, without subagents`,
    `events ${delta(a.events, b.events, String)}`,
  ]
}

/** Prints the steps that differ, and how many equal steps are between them. */
function showSteps(
  steps: readonly Pair<ViewItem>[],
  first: number,
  align: Align,
  output: Output,
): void {
  let equal = 0
  const sayEqual = (): void => {
    if (equal > 0)
      output.line(output.paint('dim', `  ${equal} equal step${equal === 1 ? '' : 's'}`))
    equal = 0
  }
  for (const [index, { before, after, isSame }] of steps.entries()) {
    if (output.closed.aborted) return
    if (isSame) {
      equal += 1
      continue
    }
    sayEqual()
    const kind = kindOfItem((before ?? after)!)
    const note = index === first ? ', the first difference' : ''
    output.line(output.paint('cyan', `@@ step ${index + 1}: ${kind}${note} @@`))
    showLines(align(linesOfItem(before), linesOfItem(after)), align, output)
  }
  sayEqual()
}

function kindOfItem(item: ViewItem): string {
  if (item.type === 'message') return `message of the ${item.from}`
  return item.type === 'call' ? `call of ${lineText(item.toolName)}` : 'note'
}

/** Returns the lines of a message's text, or of the JSON of a call. */
function linesOfItem(item: ViewItem | undefined): readonly string[] {
  if (!item) return []
  if (item.type !== 'call') return item.text.split('\n')
  const { arguments: args, state, result } = item
  return JSON.stringify({ arguments: args, state, result }, null, 2).split('\n')
}

function showLines(lines: readonly Pair<string>[], align: Align, output: Output): void {
  let count = 0
  const isNear = (index: number): boolean =>
    lines
      .slice(Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1)
      .some(({ isSame }) => !isSame)
  for (const [index, { before, after, isSame }] of lines.entries()) {
    if (isSame && !isNear(index)) continue
    if (count++ >= MAX_LINES) {
      output.line(output.paint('dim', `  … ${lines.length - index} more lines`))
      return
    }
    if (isSame) output.line(`  ${shownLine(before!)}`)
    else {
      if (before !== undefined)
        output.line(`- ${marked(before, after, { style: 'red', align, output })}`)
      if (after !== undefined)
        output.line(`+ ${marked(after, before, { style: 'green', align, output })}`)
    }
  }
}

/**
 * Colours the words that the other line lacks. Without colours, the sign before a line tells which thread it is from.
 */
function marked(
  text: string,
  against: string | undefined,
  {
    style,
    align,
    output,
  }: { readonly style: 'red' | 'green'; readonly align: Align; readonly output: Output },
): string {
  if (against === undefined) return output.paint(style, shownLine(text))
  const words = (line: string): readonly string[] => shownLine(line).match(/\s*\S+|\s+$/g) ?? []
  return align(words(text), words(against))
    .flatMap(({ before, isSame }) => (before === undefined ? [] : [{ before, isSame }]))
    .map(({ before, isSame }) => (isSame ? before : output.paint(style, before)))
    .join('')
}

function shownLine(text: string): string {
  return safeText(text, { isLine: true, maxChars: MAX_LINE_CHARS })
}
