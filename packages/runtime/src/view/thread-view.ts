import { isObject } from '@skein/base'
import type { ThreadLifecycle } from '../store/store.ts'
import type { CostUsd, ThreadInfo } from '../contract/runtime-api.ts'
import { safeJson, safeText } from '@skein/base/safe-text'
import type { DeliveryStatus, LoggedOutcome } from '@skein/threads'
import type { UndoStatus } from '@skein/governance'
import type { SessionOutcome } from '../contract/event.ts'

/**
 * A thread as it is shown to people. It is computed from the thread's events alone, so the command
 * line, the API and a page show the same view, live or from a file. Computed from the first events
 * only, it shows the thread at an earlier time.
 */
export interface ThreadView {
  readonly threadId: string
  readonly agent: string
  readonly title?: string
  readonly parentThreadId?: string
  readonly createdAt: string
  /** The time of the last event. */
  readonly updatedAt: string
  /** The number of the last event of the log. */
  readonly seq: number
  readonly status: ThreadLifecycle
  /** The status text that the agent has set. */
  readonly statusText?: string
  /** The messages, calls and notes of the thread, in order. */
  readonly items: readonly ViewItem[]
  /** The part of the next message that the model has streamed so far. */
  readonly draft?: string
  /** `pending` if a gate will check what the model streams. */
  readonly draftDelivery?: 'pending'
  /** Messages in the queue: the thread has not taken them up yet. */
  readonly queued: readonly ViewMessage[]
  /** Everything that the thread waits for, the oldest first. */
  readonly waiting: readonly ViewWait[]
  readonly children: readonly ViewChild[]
  /** The usage of this thread alone, without its children. */
  readonly usage: ViewUsage
  /**
   * The sums of the thread and all its descendants. Only in answers of the API, because the log of a
   * thread does not contain what its children have spent.
   */
  readonly tree?: ThreadInfo['tree']
  readonly failures: readonly ViewFailure[]
  /** How the last session ended; absent while a session runs. */
  readonly result?: {
    readonly outcome: SessionOutcome
    readonly reason: string
    readonly message?: string
    readonly hint?: string
  }
}

/** One entry in the history of a thread. */
export type ViewItem = ViewMessage | ViewCall | ViewNote

/** A message. Silent messages, which only models see, are not shown. */
export interface ViewMessage {
  readonly type: 'message'
  readonly id: string
  readonly at: string
  readonly from: 'user' | 'agent'
  /** The agent and its side of the conversation, e.g. `support/a`; only for messages of agents. */
  readonly agentId?: string
  readonly userId?: string
  /** The child that reported this message. */
  readonly subagentId?: string
  readonly text: string
  readonly reasoning?: string
  /** Kinds of the blocks that are not text or reasoning: `image`, `document`, … */
  readonly media: readonly string[]
  /** Paths of attached files of the thread. */
  readonly attachments: readonly string[]
  /** Whether people may rely on the message, if it is the answer of an agent with a task class. */
  readonly delivery?: DeliveryStatus
}

/** A call of a tool. */
export interface ViewCall {
  readonly type: 'call'
  readonly id: string
  readonly at: string
  readonly agentId?: string
  readonly toolName: string
  /** The arguments with which the call runs; until the tool has parsed them, those that the model sent. */
  readonly arguments: unknown
  /** What the model sent, if the tool has made other arguments of it. */
  readonly sentArguments?: unknown
  /**
   * `requested` before the call runs, `waiting` while somebody has to answer, `running`, then the outcome of the call.
   */
  readonly state: 'requested' | 'waiting' | 'running' | LoggedOutcome
  readonly result?: unknown
  readonly endedAt?: string
  /** How the call really ended, if that was reported after its outcome had been recorded as unknown. */
  readonly late?: { readonly at: string; readonly outcome: LoggedOutcome; readonly result: unknown }
  /** What became of the write, if its session failed. */
  readonly undo?: { readonly at: string; readonly status: UndoStatus; readonly error?: string }
  /** The id of the child thread that the call created. */
  readonly childId?: string
}

/** Another event that is worth showing, e.g. a handoff, a summary, a refused answer. */
export interface ViewNote {
  readonly type: 'note'
  readonly at: string
  readonly text: string
}

/** Something that the thread waits for. */
export interface ViewWait {
  /** Who or what ends the wait: a person, the client's code, a child, a timer, or the vendor of a model. */
  readonly for: 'person' | 'client' | 'child' | 'timer' | 'model'
  readonly since: string
  /** The time when the wait ends even without an answer. */
  readonly until?: string
  readonly interruptId?: string
  readonly toolCallId?: string
  readonly toolName?: string
  /** The question, or the reason for the wait. */
  readonly reason?: string
}

/** A child thread, with the facts that are in its parent's log. */
export interface ViewChild {
  readonly threadId: string
  readonly name: string
  readonly title?: string
  readonly createdAt: string
  readonly status: 'running' | 'idle' | 'awaiting_human' | 'completed' | 'failed' | 'terminated'
  readonly statusText?: string
}

/** The tokens and the cost of model requests. */
export interface ViewUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Null if the cost of any request is unknown, because the sum would then be too low. */
  readonly costUsd: CostUsd
  /** The number of requests to models. */
  readonly requests: number
  /** The number of turns of agents; a turn that waited and was continued counts once. */
  readonly turns: number
}

/** A failure that the log records. */
export interface ViewFailure {
  readonly at: string
  readonly code: string
  readonly message: string
  readonly hint?: string
  /** When the failed request is tried again. */
  readonly retryAt?: string
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
h1{font-size:1.3rem}article{border-top:1px solid #8884;padding:.6rem 0}header,footer{color:#888;font-size:.85em}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0}`

/**
 * Writes a view as one HTML file without scripts and without links to other files, in which every text
 * is escaped, so that it can be kept or sent to somebody.
 */
export function viewHtml(view: ThreadView, title: string): string {
  const { agent, threadId, createdAt, updatedAt, status, usage, items, waiting } = view
  const cost = usage.costUsd === null ? 'cost unknown' : `${usage.costUsd.toFixed(4)} USD`
  const sum = `${usage.inputTokens} tokens read, ${usage.outputTokens} written, ${cost}`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${htmlLine(title)}</title><style>${STYLE}</style></head><body>
<h1>${htmlLine(title)}</h1>
<header>${htmlLine(`${agent}, ${status}, ${createdAt} to ${updatedAt}, thread ${threadId}`)}</header>
${items.map(itemHtml).join('\n')}
${waiting.map((wait) => article(`waits for ${wait.for} since ${wait.since}`, wait.reason ?? wait.toolName ?? '')).join('\n')}
<footer>${htmlLine(sum)}</footer>
</body></html>
`
}

const MARKS = { pending: 'not checked yet', refused: 'not delivered' } as const

function itemHtml(item: ViewItem): string {
  switch (item.type) {
    case 'message': {
      const { from, agentId, userId, at, text, media, attachments, delivery } = item
      const who = from === 'user' ? (userId ?? 'user') : (agentId ?? 'agent')
      const extra = [...media, ...attachments].map((one) => `\n[${one}]`).join('')
      const mark = delivery && delivery !== 'delivered' ? `, ${MARKS[delivery]}` : ''
      return article(`${who}, ${at}${mark}`, `${text}${extra}`)
    }
    case 'call': {
      const { toolName, at, state, arguments: args, result } = item
      const answer = result === undefined ? '' : `\n${safeJson(result)}`
      return article(`${toolName} (${state}), ${at}`, `${safeJson(args)}${answer}`)
    }
    case 'note':
      return article(item.at, item.text)
  }
}

function article(head: string, text: string): string {
  return `<article><header>${htmlLine(head)}</header><pre>${escaped(safeText(text))}</pre></article>`
}

function htmlLine(text: string): string {
  return escaped(safeText(text, { isLine: true }))
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)!};`)
}

/** If more pairs of steps would have to be compared, steps are paired in order instead, which is fast. */
const MAX_COMPARED = 4_000_000

/**
 * Aligns two lists of steps, e.g. the messages and calls of two threads or branches, or words, or
 * lines. Two steps are the same if they are equal apart from their ids and times. Different steps are
 * paired if they are of the same kind (`type`, `from` and `toolName`).
 */
export function alignSteps<T>(
  before: readonly T[],
  after: readonly T[],
): readonly { readonly before?: T; readonly after?: T; readonly isSame: boolean }[] {
  const [left, right] = [before.map(stepText), after.map(stepText)]
  let start = 0
  while (start < left.length && start < right.length && left[start] === right[start]) start++
  let end = 0
  const shortest = Math.min(left.length, right.length) - start
  while (end < shortest && left.at(-1 - end) === right.at(-1 - end)) end++
  const pairs: { before?: T; after?: T; isSame: boolean }[] = []
  const same = (a: number, b: number): void =>
    void pairs.push({ before: before[a]!, after: after[b]!, isSame: true })
  for (let index = 0; index < start; index++) same(index, index)
  let [a, b] = [start, start]
  const differ = (toA: number, toB: number): void => {
    while (a < toA || b < toB) {
      const isPair = a < toA && b < toB && stepKind(before[a]) === stepKind(after[b])
      if (isPair) pairs.push({ before: before[a++]!, after: after[b++]!, isSame: false })
      else if (a < toA) pairs.push({ before: before[a++]!, isSame: false })
      else pairs.push({ after: after[b++]!, isSame: false })
    }
  }
  const [endA, endB] = [left.length - end, right.length - end]
  for (const [sameA, sameB] of commonSteps(left, right, start, endA, endB)) {
    differ(sameA, sameB)
    same(a++, b++)
  }
  differ(endA, endB)
  for (let index = end; index > 0; index--) same(left.length - index, right.length - index)
  return pairs
}

/** Returns the indexes of a longest common subsequence, between `start` and the end of each list. */
function commonSteps(
  left: readonly string[],
  right: readonly string[],
  start: number,
  endA: number,
  endB: number,
): (readonly [number, number])[] {
  const [rows, columns] = [endA - start, endB - start]
  if (rows * columns > MAX_COMPARED) return []
  const lengths = Array.from({ length: rows + 1 }, () => new Uint16Array(columns + 1))
  for (let row = rows - 1; row >= 0; row--)
    for (let column = columns - 1; column >= 0; column--)
      lengths[row]![column] =
        left[start + row] === right[start + column]
          ? lengths[row + 1]![column + 1]! + 1
          : Math.max(lengths[row + 1]![column]!, lengths[row]![column + 1]!)
  const found: (readonly [number, number])[] = []
  for (let [row, column] = [0, 0]; row < rows && column < columns;) {
    if (left[start + row] === right[start + column]) found.push([start + row++, start + column++])
    else if (lengths[row + 1]![column]! >= lengths[row]![column + 1]!) row++
    else column++
  }
  return found
}

/** The text by which steps are compared: without ids and times, because these always differ between two runs. */
function stepText(step: unknown): string {
  if (!isObject(step)) return JSON.stringify(step) ?? ''
  const kept = Object.entries(step).filter(([name]) => !/^(?:id|at|.*Id|.*At)$/.test(name))
  return JSON.stringify(Object.fromEntries(kept))
}

function stepKind(step: unknown): string {
  if (!isObject(step)) return typeof step
  return JSON.stringify([step['type'], step['from'], step['toolName']])
}
