import { callText } from '@skein/base/safe-text'
import type { SessionResult, ThreadInfo } from '@skein/runtime'
import type { Client, TreeEvent } from '@skein/server/client'
import { ExitCode, usageError } from '../terminal/command.ts'
import { MarkdownWriter } from '../terminal/markdown.ts'
import type { Output } from '../terminal/output.ts'
import { costText, formatDuration, indented } from '../terminal/format.ts'
import { lineText } from '../terminal/table.ts'
import { waitingLines } from '../terminal/waiting-text.ts'
import { type Followed, type Tally, follow } from './follow.ts'

/** How a run is shown, and from which event on. */
export interface ShowOptions extends RunViewOptions {
  readonly timeoutMs?: number
  /** The thread as it was before the run; only later events are shown. If it is missing, all events are shown. */
  readonly before?: ThreadInfo
  /** The position in the stream of events after which showing begins. Default: the last event of `before`. */
  readonly after?: string
  /** Whether a person at a terminal is asked about approvals when the run is over. */
  readonly isConversation?: boolean
}

/** Shows the events of a thread until it is at rest or waits for a person, then a summary of the run. */
export async function showRun(
  client: Client,
  thread: Pick<ThreadInfo, 'id' | 'agent'>,
  output: Output,
  options: ShowOptions,
): Promise<{ readonly code: ExitCode; readonly followed: Followed | undefined }> {
  const { before, after = before && String(before.seq), timeoutMs } = options
  const agents = await client.agents.list()
  const isDialogue = agents.some(({ name, type }) => name === thread.agent && type === 'dual_ai')
  const view = createView(output, { ...options, isDialogue })
  const sinceMs = before && Date.parse(before.updatedAt)
  const threadId = thread.id
  const outcome = await follow({ client, threadId, view, output, timeoutMs, after, sinceMs })
  if (!outcome) return { code: ExitCode.Done, followed: outcome }
  view.end(outcome.result)
  return { code: summarize(outcome, output, options.isConversation), followed: outcome }
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/**
 * Converts `--timeout` to milliseconds: `500ms`, `30s`, `5m`, `1h`; a number alone means seconds. Call
 * this before connecting, so that an invalid time is refused before a run has begun.
 */
export function timeoutOf({ timeout }: { readonly timeout?: string }): number | undefined {
  return timeOf('timeout', timeout)
}

/** Reads the time of a flag in milliseconds. */
export function timeOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? []
  if (amount === undefined)
    throw usageError(`--${flag} takes a time, not "${text}".`, 'E.g. 500ms, 30s, 5m.')
  return Number(amount) * UNITS[unit]!
}

/**
 * Prints which calls wait or how to continue, then one line about the run. Returns the exit code.
 * `isConversation`: the caller asks about approvals itself and prints the thread's id when it ends.
 */
function summarize(
  { result, tally, parkedBy }: Followed,
  output: Output,
  isConversation = false,
): ExitCode {
  const { code, status } = endOf(result, parkedBy)
  for (const item of result.waiting)
    if (!isConversation || item.kind !== 'approval')
      for (const line of waitingLines(item)) output.say(line)
  if (result.outcome === 'stopped')
    output.say(`Continue with: skein thread resume ${result.thread.id}`)
  output.say(
    [
      output.paint(code === ExitCode.Done ? 'green' : 'yellow', status),
      `${tally.turns} ${tally.turns === 1 ? 'turn' : 'turns'}`,
      `${tally.tokens} tokens`,
      costText(tally.costUsd),
      formatDuration(tally.elapsedMs),
      isConversation ? '' : `thread ${result.thread.id}`,
    ]
      .filter((part) => part !== '')
      .join(' · '),
  )
  return code
}

const LIMITS = new Set(['budget_exceeded', 'max_side_steps', 'max_session_turns', 'max_handoffs'])
const REFUSALS = new Set(['fail_safe', 'blocked'])

/** Returns the exit code for the end of a session, and its name in the summary. */
function endOf(
  { outcome, reason }: Pick<SessionResult, 'outcome' | 'reason'>,
  parkedBy: Followed['parkedBy'],
): { readonly code: ExitCode; readonly status: string } {
  switch (outcome) {
    case 'completed':
      return { code: ExitCode.Done, status: 'done' }
    case 'waiting':
      return { code: ExitCode.Waiting, status: 'waiting for a person' }
    case 'stopped':
      return parkedBy === 'timeout'
        ? { code: ExitCode.TimedOut, status: 'timed out, parked' }
        : { code: ExitCode.Interrupted, status: 'parked' }
    case 'terminated':
      return { code: ExitCode.Failed, status: 'terminated' }
    case 'failed': {
      const status = `failed (${reason})`
      if (REFUSALS.has(reason)) return { code: ExitCode.FailedSafe, status }
      return { code: LIMITS.has(reason) ? ExitCode.Limit : ExitCode.Failed, status }
    }
  }
}

/** Shows the events of a run while it runs. */
export interface RunView {
  show(event: TreeEvent, tally: Tally): void
  /** Called a few times a second, even while no events arrive. */
  tick(tally: Tally): void
  /** Prints the answer or the failure, before the summary. */
  end(result: SessionResult): void
}

/** The flags that determine how a run is shown. */
export interface RunViewOptions {
  readonly json?: boolean
  readonly jsonl?: boolean
  readonly verbose?: boolean
  /**
   * Whether two models speak to each other in the thread (both sides of the agent are models). Their messages are
   * then shown as progress, and only the result as the answer.
   */
  readonly isDialogue?: boolean
  /** Whether text on a terminal is wrapped at words and shown as Markdown. */
  readonly isMarkdown?: boolean
}

/** Creates the view for these flags. With `jsonl`, the view prints the events of the HTTP API, one per line. */
export function createView(output: Output, options: RunViewOptions): RunView {
  if (!options.jsonl) return new PeopleView(output, options)
  return {
    show: ({ threadId, path, id, event }) => output.json({ threadId, path, id, event }),
    tick: () => undefined,
    end: () => undefined,
  }
}

/**
 * Prints progress on standard error and the answer on standard output. A terminal shows the answer
 * while the model writes it; a pipe or a file gets only the final answer, when the session has ended.
 */
class PeopleView implements RunView {
  readonly #output: Output
  readonly #options: RunViewOptions
  readonly #streams: boolean
  readonly #markdown: MarkdownWriter | undefined
  #isTextOpen = false
  #hasText = false
  /** Whether deltas of the current step were printed, so that its whole message is not printed again. */
  #isShown = false

  constructor(output: Output, options: RunViewOptions) {
    this.#output = output
    this.#options = options
    this.#streams = output.isTerminal && !options.json && !options.isDialogue
    if (options.isMarkdown && output.isTerminal)
      this.#markdown = new MarkdownWriter(output, output.columns)
  }

  show(event: TreeEvent, tally: Tally): void {
    if (this.#streams && event.path.length === 1) this.#stream(event.event)
    const { verbose = false, isDialogue = false } = this.#options
    const { path, event: happened } = event
    // The agent's messages to the person are the answer; `#stream` or `end` prints them.
    const isAnswer = happened.type === 'message_added' && path.length === 1 && !isDialogue
    // A failure that ends the run is the result of the run; `end` prints it.
    const isEnd =
      happened.type === 'step_failed' && path.length === 1 && happened.retryAt === undefined
    const words = isAnswer || isEnd ? undefined : progressText(happened, verbose)
    if (words !== undefined) {
      this.#closeText()
      const depth = path.length - 1
      const line = depth === 0 ? words : `${'  '.repeat(depth)}${path.at(-1)}: ${words}`
      this.#output.say(this.#output.paint('dim', line))
    }
    this.tick(tally)
  }

  tick(tally: Tally): void {
    if (this.#isTextOpen || tally.elapsedMs < 1000) return
    this.#output.status(`… ${formatDuration(tally.elapsedMs)}, ${tally.tokens} tokens`)
  }

  end(result: SessionResult): void {
    this.#closeText()
    if (this.#options.json) this.#output.json(result)
    else if (result.outcome === 'completed' && !this.#hasText) {
      if (result.text !== '' && this.#markdown) this.#text(result.text)
      else if (result.text !== '') this.#output.line(result.text)
      this.#closeText()
    } else if (result.outcome === 'failed') {
      if (result.reason === 'fail_safe' && this.#hasText)
        this.#output.say('The text above was not delivered.')
      this.#output.say(`${this.#output.paint('red', 'failed:')} ${indented(result.text)}`)
      if (result.hint !== undefined) this.#output.say(indented(result.hint))
    }
  }

  #stream(event: TreeEvent['event']): void {
    if (event.type === 'step_start') this.#isShown = false
    if (event.type === 'step_reset' || event.type === 'step_failed') this.#closeText()
    if (event.type === 'text_delta') {
      this.#text(event.text)
      this.#isShown = true
    }
    // If following began in the middle of a step, its first deltas were missed, so the whole message is printed.
    if (event.type === 'message_added' && event.message.type === 'assistant') {
      const text = textOfMessageEvent(event)
      if (!this.#isShown && text !== '') {
        this.#text(text)
      }
      this.#closeText()
    }
  }

  #text(text: string): void {
    if (this.#markdown) this.#markdown.push(text)
    else this.#output.data(text)
    this.#isTextOpen = this.#hasText = true
  }

  #closeText(): void {
    if (this.#isTextOpen) {
      this.#markdown?.end()
      this.#output.endLine()
    }
    this.#isTextOpen = false
  }
}

/** Returns the line of progress for an event; undefined for events that have none. */
function progressText(event: TreeEvent['event'], isVerbose: boolean): string | undefined {
  switch (event.type) {
    case 'tool_execution_start':
      return `tool ${isVerbose ? callText(event.toolName, event.arguments) : lineText(event.toolName)}`
    case 'tool_execution_end':
      if (event.outcome === 'success') return undefined
      return `tool ${lineText(event.toolName)}: ${isVerbose ? callText(event.outcome, event.result) : event.outcome}`
    case 'message_added': {
      const text = isVerbose ? textOfMessageEvent(event) : ''
      return text === '' ? undefined : `${event.agentId ?? 'agent'} says: ${indented(text)}`
    }
    case 'subagent_created':
      // If a tool call created the subagent, the line of that call is already shown.
      return event.toolCallId === undefined ? `subagent ${lineText(event.name)}` : undefined
    case 'agent_handoff':
      return `handed over to ${lineText(event.toAgentId)}`
    case 'step_failed':
      return `model call failed: ${indented(event.message)}${event.retryAt === undefined ? '' : ' (tried again)'}`
    case 'gate_decided':
      if (event.decision !== 'repair') return undefined
      return `not delivered yet: ${(event.reasonCodes ?? []).join(', ')}`
    default:
      event satisfies WithoutProgress
      return undefined
  }
}

/** Returns the text of an assistant message; empty for other messages. */
function textOfMessageEvent({
  message,
}: Extract<TreeEvent['event'], { type: 'message_added' }>): string {
  if (message.type !== 'assistant') return ''
  return message.content.map((block) => ('text' in block ? block.text : '')).join('')
}

/** Returns a text with the model and how much of its context window the last request used. */
export async function contextText({
  name,
  contextTokens,
}: NonNullable<Tally['model']>): Promise<string> {
  const { modelCatalog } = await import('@skein/ai/catalog')
  const limit = modelCatalog[name]?.limits.contextTokens
  const share = limit ? ` of ${limit} (${Math.round((100 * contextTokens) / limit)} %)` : ''
  return `${name} · context ${contextTokens}${share} tokens`
}

/** Events without a line of progress. */
// prettier-ignore
type WithoutProgress = Extract<TreeEvent['event'], { type:
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_start' | 'session_end' | 'session_failing' | 'write_undone' | 'undo_decided' |
  'message_queued' | 'message_unqueued' | 'message_updated' | 'call_changed' | 'message_removed' |
  'delivery_changed' | 'turn_start' | 'turn_end' | 'step_start' | 'step_reset' | 'text_delta' |
  'late_result' | 'call_reset' | 'interrupt_opened' | 'interrupt_answered' | 'subagent_updated' |
  'subagent_ended' | 'context_compacted' | 'error_raised' | 'model_requested' | 'model_answered' |
  'inference_recorded' | 'usage_recorded' | 'agent_registered' | 'step_end' | 'reasoning_delta' |
  'tool_call_delta' | 'tool_execution_progress' | 'tool_call_hidden' | 'file_written' |
  'file_removed' | 'source_added' | 'evidence_added' | 'custom_event' | 'session_stop_requested' |
  'immediate_done' | 'stop_requested' | 'turn_cut' | 'resume_requested' | 'value_set' |
  'env_set' | 'effect_scheduled' | 'effect_started' | 'effect_ended' | 'variables_requested' |
  'variables_provided' | 'variables_settled' | 'grant_made' | 'grant_revoked'
}>
