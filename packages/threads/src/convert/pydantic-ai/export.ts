import { createConfigStore, type ConfigStore } from './config-store.ts'
import { ThreadError, joinPointer, type Converted, type Loss } from '../../issue.ts'
import { stringifyJson } from '../../json/json-stringify.ts'
import type { SystemMessage, Thread, ThreadMessage, UserTurn } from '../../document/thread.ts'
import { UNKNOWN_MESSAGE } from './import.ts'
import { exportMessage } from './export-message.ts'
import type { PydanticMessage } from './types.ts'

/**
 * How to export items that Pydantic AI would reject: throw an error, leave them out and report them, or write
 * them anyway.
 */
export type ExportPolicy = 'strict' | 'skip' | 'raw'

/** Settings of an export to Pydantic AI. */
export interface ToPydanticOptions {
  /** The store with the thread's prompts. Default: an empty store. */
  readonly configs?: ConfigStore
  /** Default `skip`. */
  readonly policy?: ExportPolicy
  /** A system prompt that is put first, as a separate request. */
  readonly systemPrompt?: string
  /**
   * The part kinds that the reader supports, if it is not Pydantic AI 2.33: fewer for an older version, more
   * for a newer one.
   */
  readonly partKinds?: Iterable<string>
}

/** Thrown with the policy `strict` when the thread contains items that Pydantic AI would reject. */
export class PydanticExportError extends ThreadError {
  readonly refused: readonly Loss[]

  constructor(refused: readonly Loss[]) {
    super(
      `Pydantic AI would refuse ${refused.length} item(s): ${refused[0]?.reason} (at ${refused[0]?.pointer}).`,
      {
        code: 'PYDANTIC_REFUSES',
        hint: "Use policy 'skip' to leave them out, or 'raw' to write them anyway.",
      },
    )
    this.refused = refused
  }
}

/** The settings and reports that the conversion of one message uses. */
export interface ExportContext {
  readonly configs: ConfigStore
  readonly policy: ExportPolicy
  readonly partKinds: ReadonlySet<string> | undefined
  /** Reports an item that Pydantic AI would reject. Returns true when the item must be left out. */
  refuse(pointer: string, reason: string): boolean
  /** Reports an item that cannot be represented in Pydantic AI. */
  lose(pointer: string, reason: string): void
}

/**
 * Converts a thread to Pydantic AI messages. Messages that came from Pydantic AI are restored unchanged;
 * others get the fields and defaults that Pydantic AI itself would write.
 */
export function toPydanticAI(
  thread: Thread,
  options: ToPydanticOptions = {},
): Converted<readonly PydanticMessage[]> {
  const losses: Loss[] = []
  const refusals: Loss[] = []
  const policy = options.policy ?? 'skip'
  const context: ExportContext = {
    configs: options.configs ?? createConfigStore(),
    policy,
    partKinds: options.partKinds && new Set(options.partKinds),
    refuse(pointer, reason) {
      if (policy === 'raw') return false
      refusals.push({ pointer, reason })
      losses.push({ pointer, reason })
      return true
    },
    lose: (pointer, reason) => void losses.push({ pointer, reason }),
  }
  const messages: PydanticMessage[] = []
  for (const [index, turn] of thread.turns.entries()) {
    const at = `/turns/${index}`
    if (turn.turn_type === 'user') messages.push(exportMessage(turn, at, context))
    else if (turn.turn_type === 'agent') messages.push(...agentMessages(turn.messages, at, context))
    else context.lose(at, 'Pydantic AI knows no such turn')
  }
  if (policy === 'strict' && refusals.length > 0) throw new PydanticExportError(refusals)
  if (options.systemPrompt !== undefined)
    messages.unshift(systemPromptRequest(options.systemPrompt))
  return { value: messages, lost: losses }
}

/**
 * Converts a thread to the JSON text of Pydantic AI messages. A history that was imported as text is restored
 * byte for byte.
 */
export function toPydanticAIText(
  thread: Thread,
  options: ToPydanticOptions = {},
): Converted<string> {
  const { value, lost } = toPydanticAI(thread, options)
  return { value: stringifyJson(value), lost }
}

/** Creates a request with only a system prompt, which a host puts before a history. */
export function systemPromptRequest(content: string): PydanticMessage {
  return { kind: 'request', parts: [{ part_kind: 'system-prompt', content }] }
}

function* agentMessages(
  messages: readonly (ThreadMessage | SystemMessage | UserTurn)[],
  turnPointer: string,
  context: ExportContext,
): Iterable<PydanticMessage> {
  for (const [index, message] of messages.entries()) {
    const at = joinPointer(turnPointer, 'messages', index)
    if (!('message_type' in message) || message.message_type !== 'system') {
      yield exportMessage(message, at, context)
    } else if (message.event_type === UNKNOWN_MESSAGE) {
      if (!context.refuse(at, 'unknown kind of message'))
        yield message.event_data as PydanticMessage
    } else context.lose(at, 'system events have no place in Pydantic AI')
  }
}
