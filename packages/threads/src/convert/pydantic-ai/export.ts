import { createConfigStore, type ConfigStore } from './config-store.ts'
import { ThreadError, joinPointer, type Converted, type Loss } from '../../issue.ts'
import { stringifyJson } from '../../json/json-stringify.ts'
import type { SystemMessage, Thread, ThreadMessage, UserTurn } from '../../document/thread.ts'
import { UNKNOWN_MESSAGE } from './import.ts'
import { exportMessage } from './export-message.ts'
import type { PydanticMessage } from './types.ts'

/** What to do with things Pydantic AI would refuse: throw, leave them out and say so, or write them all the same. */
export type ExportPolicy = 'strict' | 'skip' | 'raw'

/** Settings of an export to Pydantic AI. */
export interface ToPydanticOptions {
  /** Where the thread's prompts are. Default: none are known. */
  readonly configs?: ConfigStore
  /** Default `skip`. */
  readonly policy?: ExportPolicy
  /** A system prompt that goes first, as its own request. */
  readonly systemPrompt?: string
  /** Part kinds that the reader knows, if it is not Pydantic AI 2.33: fewer for an older one, more for a newer one. */
  readonly partKinds?: Iterable<string>
}

/** Under the policy `strict`: the thread holds what Pydantic AI would refuse. */
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

/** What the conversion of one message needs to know and report. */
export interface ExportContext {
  readonly configs: ConfigStore
  readonly policy: ExportPolicy
  readonly partKinds: ReadonlySet<string> | undefined
  /** Notes something Pydantic AI would refuse. True when it is to be left out. */
  refuse(pointer: string, reason: string): boolean
  /** Notes something that has no place in Pydantic AI. */
  lose(pointer: string, reason: string): void
}

/**
 * Makes Pydantic AI messages from a thread. Messages that came from Pydantic AI come back as they were; others get the
 * fields and defaults that Pydantic AI itself would write.
 */
export function toPydanticAI(
  thread: Thread,
  options: ToPydanticOptions = {},
): Converted<readonly PydanticMessage[]> {
  const lost: Loss[] = []
  const refused: Loss[] = []
  const policy = options.policy ?? 'skip'
  const context: ExportContext = {
    configs: options.configs ?? createConfigStore(),
    policy,
    partKinds: options.partKinds && new Set(options.partKinds),
    refuse(pointer, reason) {
      if (policy === 'raw') return false
      refused.push({ pointer, reason })
      lost.push({ pointer, reason })
      return true
    },
    lose: (pointer, reason) => void lost.push({ pointer, reason }),
  }
  const messages: PydanticMessage[] = []
  for (const [index, turn] of thread.turns.entries()) {
    const at = `/turns/${index}`
    if (turn.turn_type === 'user') messages.push(exportMessage(turn, at, context))
    else if (turn.turn_type === 'agent') messages.push(...agentMessages(turn.messages, at, context))
    else context.lose(at, 'Pydantic AI knows no such turn')
  }
  if (policy === 'strict' && refused.length > 0) throw new PydanticExportError(refused)
  if (options.systemPrompt !== undefined)
    messages.unshift(systemPromptRequest(options.systemPrompt))
  return { value: messages, lost }
}

/** As `toPydanticAI`, printed: byte for byte what Pydantic AI dumped, for a history that came from there. */
export function toPydanticAIText(
  thread: Thread,
  options: ToPydanticOptions = {},
): Converted<string> {
  const { value, lost } = toPydanticAI(thread, options)
  return { value: stringifyJson(value), lost }
}

/** A request that holds a system prompt only, as the host puts it before a history. */
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
