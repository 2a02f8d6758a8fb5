import { ThreadError } from '../issue.ts'
import { setOwn } from '../json/json-parse.ts'
import { keepJsonText } from '../json/json-stringify.ts'
import type { AgentTurn, Thread, ThreadMessage, UserTurn } from './thread.ts'
import type { MessagePart, TextPart, ThinkingPart, UserPromptPart } from './part.ts'

/**
 * How the messages of other agents are shown to an agent: `prefix` puts `{agent:NAME}: ` before their text
 * (the specification's way), `as-user` shows their text and files as user input, `text-only` keeps only their
 * labelled text, `raw` changes nothing.
 */
export type ViewPolicy = 'prefix' | 'as-user' | 'text-only' | 'raw'

/** Settings of `toModelMessages`. */
export interface ViewOptions {
  /** Default `prefix`. */
  readonly policy?: ViewPolicy
  /**
   * What is shown of other agents' thinking with the policy `prefix`. Default `text`: the text without signature and
   * ids, which are valid only for the provider and the agent that made them. `keep` leaves the part as it is, `drop`
   * leaves it out. The policy `raw` always keeps thinking; the others never show it.
   */
  readonly foreignThinking?: 'text' | 'keep' | 'drop'
  /**
   * With `as-user`: whether the text names the agent that wrote it. Default true; two agents that talk to
   * each other need no label.
   */
  readonly label?: boolean
  /** A system prompt that is put first, as a separate request. */
  readonly systemPrompt?: string
}

/**
 * A message as it is shown to a model. Parts that did not have to change are the same objects as in the
 * thread.
 */
export interface ModelMessage {
  readonly kind: 'request' | 'response'
  readonly parts: readonly (
    MessagePart | { readonly part_kind: 'system-prompt'; readonly content: string }
  )[]
  readonly timestamp?: string
  readonly [field: string]: unknown
}

/**
 * Converts the thread to the input of one agent: user turns become requests, system messages are left out,
 * the order is kept. With every policy except `raw`, text that looks like a label is escaped (`\{agent:`), so
 * that no text can pretend to be from another agent. The thread itself is never changed.
 */
export function toModelMessages(
  thread: Thread,
  viewingAgentId: string,
  options: ViewPolicy | ViewOptions = {},
): readonly ModelMessage[] {
  const view = new View(
    thread,
    viewingAgentId,
    typeof options === 'string' ? { policy: options } : options,
  )
  return [...view.messages()]
}

/**
 * Loads the system prompt of the viewing agent, which is not part of the thread, and puts it first, as a
 * separate request.
 */
export async function withSystemPrompt(
  messages: readonly ModelMessage[],
  agentId: string,
  load: (agentId: string) => string | undefined | Promise<string | undefined>,
): Promise<readonly ModelMessage[]> {
  const content = await load(agentId)
  return content === undefined ? messages : [systemPromptMessage(content), ...messages]
}

/** Fields of turns and messages that are not shown to the model, or whose name has another meaning there. */
const NOT_IN_VIEW = new Set([
  'kind',
  'turn_type',
  'message_type',
  'submitted_at',
  'timestamp',
  'parts',
  'pydantic_ai',
  'system_prompts',
  'instructions_ref',
  'turn_id',
  'user_id',
  'name',
  'client_metadata',
])

class View {
  readonly #thread: Thread
  readonly #viewer: string
  readonly #policy: ViewPolicy
  readonly #foreignThinking: NonNullable<ViewOptions['foreignThinking']>
  readonly #label: boolean
  readonly #systemPrompt: string | undefined

  constructor(thread: Thread, viewer: string, options: ViewOptions) {
    this.#thread = thread
    this.#viewer = viewer
    this.#policy = options.policy ?? 'prefix'
    this.#foreignThinking = options.foreignThinking ?? 'text'
    this.#label = options.label ?? true
    this.#systemPrompt = options.systemPrompt
    if (!['prefix', 'as-user', 'text-only', 'raw'].includes(this.#policy)) {
      throw new ThreadError(`There is no view policy "${String(this.#policy)}".`, {
        code: 'UNKNOWN_VIEW_POLICY',
        hint: 'Use prefix, as-user, text-only or raw.',
      })
    }
  }

  *messages(): Iterable<ModelMessage> {
    if (this.#systemPrompt !== undefined) yield systemPromptMessage(this.#systemPrompt)
    for (const turn of this.#thread.turns) {
      if (turn.turn_type === 'user') yield this.#request(turn)
      else if (turn.turn_type === 'agent') yield* this.#agentTurn(turn)
    }
  }

  *#agentTurn(turn: AgentTurn): Iterable<ModelMessage> {
    for (const message of turn.messages) {
      if (message.message_type === 'system') continue
      const visible =
        message.agent_id === this.#viewer
          ? this.#message(message, this.#own(message.parts))
          : this.#foreign(message)
      if (visible) yield visible
    }
  }

  #request(turn: UserTurn): ModelMessage {
    return {
      kind: 'request',
      parts: this.#own(turn.parts),
      timestamp: turn.submitted_at,
      ...fieldsInView(turn),
    }
  }

  #message(
    message: ThreadMessage,
    parts: readonly MessagePart[],
    kind = message.message_type,
  ): ModelMessage {
    return { kind, parts, timestamp: message.timestamp, ...fieldsInView(message) }
  }

  #foreign(message: ThreadMessage): ModelMessage | undefined {
    if (this.#policy === 'raw') return this.#message(message, message.parts)
    const label = labelOf(this.#thread, message.agent_id)
    const parts = message.parts.flatMap((part) => this.#foreignPart(part, label))
    if (parts.length === 0 && message.parts.length > 0) return undefined
    return this.#message(
      message,
      parts,
      this.#policy === 'as-user' ? 'request' : message.message_type,
    )
  }

  /** Converts a part of another agent to one part or none. */
  #foreignPart(part: MessagePart, label: string): MessagePart[] {
    switch (part.part_kind) {
      case 'text':
        if (this.#policy === 'as-user') return [this.#userPrompt(part, label)]
        return [keepJsonText(part, { ...part, content: label + escapePrefixes(part.content) })]
      case 'user-prompt':
        return [escapePart(part)]
      case 'thinking':
        return this.#policy === 'prefix' ? this.#foreignThought(part) : []
      case 'file':
        return this.#policy === 'as-user'
          ? [{ part_kind: 'user-prompt', content: [part.content] }]
          : this.#policy === 'prefix'
            ? [part]
            : []
      case 'tool-call':
      case 'tool-return':
      case 'retry-prompt':
      case 'builtin-tool-call':
      case 'builtin-tool-return':
      case 'compaction':
      case 'speech':
      case 'tool-availability-delta':
        return this.#policy === 'prefix' ? [escapePart(part)] : []
      default:
        // A part of an unknown kind is treated like a tool part: only `prefix` shows it.
        part satisfies never
        return this.#policy === 'prefix' ? [escapePart(part)] : []
    }
  }

  #foreignThought(part: ThinkingPart): MessagePart[] {
    if (this.#foreignThinking === 'keep') return [escapePart(part)]
    // Some thinking is only a signature; nothing of it is left for another agent.
    if (this.#foreignThinking === 'drop' || !part.content) return []
    const { signature: _, id: __, thinking_id: ___, provider_details: ____, ...shown } = part
    return [escapePart(keepJsonText(part, shown))]
  }

  #userPrompt(part: TextPart, label: string): UserPromptPart {
    const text = escapePrefixes(part.content)
    return { part_kind: 'user-prompt', content: this.#label ? label + text : text }
  }

  /**
   * Returns parts of the user or of the viewing agent, unchanged except that text that looks like the label
   * of an agent (`{agent:NAME}: `) is escaped.
   */
  #own(parts: readonly MessagePart[]): readonly MessagePart[] {
    if (this.#policy === 'raw') return parts
    const visibleParts = parts.map(escapePart)
    return visibleParts.every((part, index) => part === parts[index]) ? parts : visibleParts
  }
}

function systemPromptMessage(content: string): ModelMessage {
  return { kind: 'request', parts: [{ part_kind: 'system-prompt', content }] }
}

function fieldsInView(source: object): { [field: string]: unknown } {
  return Object.fromEntries(Object.entries(source).filter(([key]) => !NOT_IN_VIEW.has(key)))
}

/**
 * Escapes text that looks like the label of an agent (`{agent:NAME}: `). Results of tools and requests to try
 * again are escaped too: they repeat what a page, a file or another program said, which is the likeliest
 * place for a forged label. A part without such text is returned itself.
 */
function escapePart<Part extends MessagePart>(part: Part): Part {
  if (isFixed(part)) return part
  const field = part.part_kind === 'speech' ? 'transcript' : 'content'
  const value = (part as { readonly content?: unknown; readonly transcript?: unknown })[field]
  const escapedValue = escapeValue(value)
  return escapedValue === value ? part : keepJsonText(part, { ...part, [field]: escapedValue })
}

/**
 * Whether a part has to reach the model unchanged: tool calls, so that the model sees what it sent, and
 * content that a provider made and checks when it is sent back.
 */
function isFixed(part: MessagePart): boolean {
  switch (part.part_kind) {
    case 'tool-call':
    case 'builtin-tool-call':
    case 'builtin-tool-return':
    case 'compaction':
      return true
    case 'thinking':
      return typeof part.signature === 'string'
    default:
      return false
  }
}

/** Escapes every text inside a value, keys included; bytes are skipped. */
function escapeValue(value: unknown): unknown {
  if (typeof value === 'string') return escapePrefixes(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map(escapeValue)
    return items.every((item, index) => item === value[index]) ? value : keepJsonText(value, items)
  }
  const source = value as { readonly [key: string]: unknown }
  const copy: { [key: string]: unknown } = {}
  let hasChanged = false
  for (const key of Object.keys(source)) {
    const name = escapePrefixes(key)
    const isBytes = key === 'data' && source['kind'] === 'binary'
    const field = isBytes ? source[key] : escapeValue(source[key])
    hasChanged ||= name !== key || field !== source[key]
    setOwn(copy, name, field)
  }
  return hasChanged ? keepJsonText(source, copy, escapePrefixes) : value
}

/** Returns the label for another agent's text: `{agent:NAME}: `, with the agent's name from the registry. */
function labelOf(thread: Thread, agentId: string): string {
  const agent = Object.hasOwn(thread.agents, agentId) ? thread.agents[agentId] : undefined
  // Characters that could end the label early or start a new line are percent-encoded. Different names stay
  // different, and ordinary names stay as they are.
  const name = (agent?.agent_name ?? agentId).replace(
    /[{}\p{Cc}\p{Zl}\p{Zp}]|%(?=[0-9A-Fa-f]{2})/gu,
    (character) => encodeURIComponent(character),
  )
  return `{agent:${name}}: `
}

const LOOK_ALIKE = /\{\s*agent\s*:/giu

/**
 * Escapes text that looks like a label with a backslash. Text that already has backslashes there gets one
 * more, so that the escape can be undone.
 */
function escapePrefixes(text: string): string {
  return text.includes('{') ? text.replace(LOOK_ALIKE, '\\$&') : text
}

/** Reverses `escapePrefixes`, for text that a model quotes. */
export function unescapePrefixes(text: string): string {
  return text.replace(/\\(\{\s*agent\s*:)/giu, '$1')
}
