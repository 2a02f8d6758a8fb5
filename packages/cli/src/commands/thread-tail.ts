import { messageFromJSON } from '@skein/ai'
import { callText, safeJson, safeText } from '@skein/base/safe-text'
import type { NumberedEvent, ThreadInfo } from '@skein/runtime'
import type { Client, TreeEvent } from '@skein/server/client'
import { findThreadByPrefix } from '../connect/short-ids.ts'
import { withConnection } from '../connect/connect.ts'
import { showRun, timeoutOf } from '../follow/show-run.ts'
import {
  type Command,
  ExitCode,
  RUN_OPTIONS,
  SERVER_OPTIONS,
  THREAD_OPERAND,
  defineCommand,
  usageError,
} from '../terminal/command.ts'
import { costText } from '../terminal/format.ts'
import { lineText } from '../terminal/table.ts'

/** An event. Only the stream of a whole tree of threads adds the thread's id and path. */
type Shown = NumberedEvent & Partial<Pick<TreeEvent, 'threadId' | 'path'>>

type ShownEvent = Shown['event']

/** The maximum length of an event on its line. */
const MAX_LENGTH = 120

function shortText(event: ShownEvent): string {
  const text = eventText(event)
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH - 1)}…` : text
}

/** Says in words what an event means; rare events are shown as JSON without their ids. */
function eventText(event: ShownEvent): string {
  switch (event.type) {
    case 'message_added':
    case 'message_queued': {
      const message = messageFromJSON(event.message)
      if (message.type === 'tool_result') return `${message.results.length} results`
      const calls = message.type === 'assistant' ? (message.toolCalls ?? []) : []
      const words = message.text === '' ? [] : [safeText(message.text, { isLine: true })]
      const callTexts = calls.map(({ toolName, arguments: args }) => callText(toolName, args))
      return `${message.type}: ${[...words, ...callTexts].join(' ')}`
    }
    case 'text_delta':
      return safeText(event.text, { isLine: true })
    case 'model_requested':
      return `${lineText(event.provider)}/${lineText(event.model)}`
    case 'model_answered': {
      const { usage = {}, durationMs, error, costUsd } = event
      if (error) return `failed: ${lineText(error.message)}`
      const tokens = `${Number(usage['input_tokens'] ?? 0)} in, ${Number(usage['output_tokens'] ?? 0)} out`
      return `${tokens}, ${durationMs} ms, ${costText(costUsd ?? null)}`
    }
    case 'tool_execution_start':
      return callText(event.toolName, event.arguments)
    case 'tool_execution_end':
    case 'late_result':
      return `${lineText(event.toolName)}: ${callText(event.outcome, event.result ?? null)}`
    case 'interrupt_opened':
      return `${event.interrupt.kind} for call ${lineText(event.interrupt.toolCallId)}`
    case 'interrupt_answered':
      return answerText(event)
    case 'gate_decided':
      return [event.gate, event.decision, ...(event.reasonCodes ?? [])].join(' ')
    case 'session_end': {
      const text =
        event.message === undefined ? '' : `: ${safeText(event.message, { isLine: true })}`
      return `${event.outcome} (${event.reason})${text}`
    }
    case 'status_changed':
      return event.status
    case 'subagent_created':
      return `${lineText(event.name)} ${event.reference}`
    case 'subagent_ended':
      return `${event.reference}: ${callText(event.outcome, event.result ?? null)}`
    case 'agent_handoff':
      return `to ${lineText(event.toAgentId)}`
    case 'thread_created':
      return 'agent' in event ? lineText(event.agent) : ''
    case 'agent_registered':
      return lineText(event.agent.agent_id)
    case 'turn_start':
      return lineText(event.agentId)
    case 'turn_end':
      return `${event.outcome}${event.reason === undefined ? '' : ` (${lineText(event.reason)})`}`
    case 'evidence_added':
      return lineText(event.summary ?? event.kind)
    case 'effect_scheduled':
      return `${callText(event.name, event.args)} at ${event.runAt}`
    case 'error_raised':
      return `${lineText(event.code)}: ${lineText(event.message)}`
    default:
      event satisfies ShownAsJson
      return factsText(event)
  }
}

/** The fields of an event, without ids and counts that mean nothing to people; empty if none is left. */
function factsText(event: ShownEvent): string {
  const hidden = /^(?:type|at|(?:turn|step|session|log)Id|definitions|epoch|version)$/
  const facts = Object.entries(event).filter(
    ([name, value]) => !hidden.test(name) && !(name === 'attempt' && value === 1),
  )
  return facts.length === 0 ? '' : safeJson(Object.fromEntries(facts))
}

/** Says who answered a waiting call, and how. */
export function answerText({
  answer,
  answeredBy,
}: Extract<ShownEvent, { type: 'interrupt_answered' }>): string {
  const by = answeredBy === undefined ? '' : ` by ${lineText(answeredBy)}`
  const reason =
    'reason' in answer && answer.reason !== undefined ? `: ${lineText(answer.reason)}` : ''
  const words = {
    approve: 'approved',
    deny: 'denied',
    result: 'answered',
    error: 'failed',
  } as const
  return `${words[answer.type]}${by}${reason}`
}

/** `skein thread tail` */
export const threadTail: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: {
    jsonl: { type: 'boolean', description: 'Prints whole events, one JSON object per line.' },
    after: { type: 'string', value: 'id', description: 'Prints only events after this one.' },
    'until-parked': {
      type: 'boolean',
      description: 'Ends when neither the thread nor any of its subagents is running.',
    },
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread tail 7f3a', 'skein thread tail 7f3a --until-parked --jsonl'],
  async run({ values, operands: [given = ''], output }) {
    return withConnection(values, output, async ({ client, url }) => {
      const thread = await findThreadByPrefix(client, given)
      const interrupt = new AbortController()
      const stop = (): void => interrupt.abort()
      process.once('SIGINT', stop).once('SIGTERM', stop)
      const { after } = values
      const options = { after, signal: AbortSignal.any([interrupt.signal, output.closed]) }
      const events: AsyncIterable<Shown> =
        url === undefined
          ? stored(client, thread, after)
          : client.streamTree(thread.id, { ...options, untilParked: values['until-parked'] })
      for await (const { id, event, threadId = thread.id, path = [thread.agent] } of events) {
        if (output.closed.aborted) break
        if (values.jsonl) {
          output.json({ threadId, path, id, event })
          continue
        }
        const { type, at } = event
        const place = lineText(path.join(' › '))
        const line = `${id.padEnd(6)} ${at.slice(11, 23)} ${place} ${type} ${shortText(event)}`
        output.line(line.trimEnd())
      }
      return interrupt.signal.aborted ? ExitCode.Interrupted : ExitCode.Done
    })
  },
})

/**
 * Yields the stored events, each with the agent that the thread had at that time. Used without a
 * server: then no thread runs, so no other events can follow.
 */
async function* stored(
  { threads }: Client,
  { id, agent }: ThreadInfo,
  from = '0',
): AsyncGenerator<Shown, void, undefined> {
  const first = Math.trunc(Number.parseFloat(from))
  if (Number.isNaN(first)) throw usageError(`--after takes the id of an event, not "${from}".`)
  let path = [agent]
  for (let after = 0; ;) {
    const page = await threads.events(id, { after, limit: 1000 })
    if (page.length === 0) return
    for (const { seq, event } of page) {
      if (event.type === 'thread_created') path = [event.agent]
      if (seq > first) yield { id: String(seq), event, path }
      if (event.type === 'agent_handoff') path = [event.toAgentId.replace(/\/[ab]$/, '')]
    }
    after = page.at(-1)!.seq
  }
}

/** `skein thread resume` */
export const threadResume: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: RUN_OPTIONS,
  examples: ['skein thread resume 7f3a', 'skein thread resume 7f3a --timeout 5m --json'],
  async run({ values, operands: [text = ''], output }) {
    const timeoutMs = timeoutOf(values)
    return withConnection(
      values,
      output,
      async ({ client }) => {
        const before = await findThreadByPrefix(client, text)
        await client.threads.resume(before.id)
        return (await showRun(client, before, output, { ...values, timeoutMs, before })).code
      },
      { works: true, creates: false },
    )
  },
})

/** Events that are shown as JSON. */
// prettier-ignore
type ShownAsJson = Extract<ShownEvent, { type:
  'thread_updated' | 'thread_terminated' | 'thread_erased' | 'session_start' | 'session_failing' |
  'write_undone' | 'undo_decided' | 'message_unqueued' | 'message_updated' | 'call_changed' |
  'message_removed' | 'delivery_changed' | 'step_start' | 'step_reset' | 'step_failed' |
  'call_reset' | 'subagent_updated' | 'context_compacted' | 'inference_recorded' |
  'usage_recorded' | 'step_end' | 'reasoning_delta' | 'tool_call_delta' |
  'tool_execution_progress' | 'tool_call_hidden' | 'file_written' | 'file_removed' |
  'source_added' | 'custom_event' | 'session_stop_requested' | 'immediate_done' |
  'stop_requested' | 'turn_cut' | 'resume_requested' | 'value_set' | 'env_set' |
  'effect_started' | 'effect_ended' | 'variables_requested' | 'variables_provided' |
  'variables_settled' | 'grant_made' | 'grant_revoked'
}>
