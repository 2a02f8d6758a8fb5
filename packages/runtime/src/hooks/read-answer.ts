import type { StoredMessage } from '../contract/thread-state.ts'
import { messageOf } from '@skein/base'
import {
  AssistantMessage,
  type Message,
  messageFromJSON,
  messageToJSON,
  ToolResultMessage,
  toResultJson,
  UserMessage,
} from '@skein/ai'
import type { KernelState } from '../state/kernel-state.ts'
import { RuntimeError } from '../contract/error.ts'
import type { HookDefinition } from '../definitions/hook-definition.ts'

/** A hook returned something that its kind of hook cannot use, or left a request without messages. */
export class HookAnswerError extends RuntimeError {
  constructor(hookId: string, problem: string) {
    super(`The hook "${hookId}" ${problem}.`, {
      code: 'HOOK_ANSWER',
      hint: 'See `HookSignatures` for what each kind of hook may return; return nothing to change nothing.',
    })
  }
}
/**
 * Checks what a hook returned. `before` is the value that the hook was given to change. Throws
 * `HookAnswerError` if the answer has the wrong shape. Messages that were made by another installed copy of
 * the library are converted to the classes of this copy.
 */
export function readHookAnswer(
  { state: { callPlaces } }: { readonly state: Pick<KernelState, 'callPlaces'> },
  { id, hook }: HookDefinition,
  answer: unknown,
  before: unknown,
): { readonly answer: unknown } {
  const wrong = (problem: string): HookAnswerError => new HookAnswerError(id, problem)
  const object = (value: unknown): Readonly<Record<string, unknown>> => {
    if (typeof value !== 'object' || value === null)
      throw wrong(`(${hook}) returned ${typeName(value)} instead of an object`)
    return value as Readonly<Record<string, unknown>>
  }
  const list = (value: unknown): readonly unknown[] => {
    if (!Array.isArray(value))
      throw wrong(`(${hook}) returned ${typeName(value)} instead of a list`)
    return value
  }
  const message = (value: unknown): Message => {
    try {
      return readMessage(value)
    } catch (error) {
      throw wrong(`(${hook}) returned something that is not a message: ${messageOf(error)}`)
    }
  }
  const sameType = (now: Message, then: Message): Message => {
    if (now.type === then.type) return now
    throw wrong(`(${hook}) changed a message of type "${then.type}" into one of type "${now.type}"`)
  }
  switch (hook) {
    case 'after_system_message':
      if (answer === null || typeof answer === 'string') return { answer }
      throw wrong(`(${hook}) returned ${typeName(answer)} instead of a text or null`)
    case 'filter_messages': {
      const originals = new Set(list(before))
      const messages = list(answer).map((one) => {
        if (originals.has(one)) return one
        const fields = object(one)
        if (typeof fields['id'] !== 'string')
          throw wrong(`(${hook}) returned a message without an id`)
        return { ...fields, message: message(fields['message']) }
      })
      return { answer: messages }
    }
    case 'prefilter_llm_history': {
      const originals = new Set(list(before))
      return { answer: list(answer).map((one) => (originals.has(one) ? one : message(one))) }
    }
    case 'before_create_message': {
      const then = (before as StoredMessage).message
      const now = sameType(message(object(answer)['message']), then)
      const own = new Set(idsOfCalls(then))
      const again = idsOfCalls(now).find((one) => !own.has(one) && callPlaces.has(one))
      if (again !== undefined)
        throw wrong(`(${hook}) added a call whose id ${again} another call of the thread has`)
      return { answer: { message: now } }
    }
    case 'before_update_message':
      return { answer: sameType(message(answer), before as Message) }
    case 'before_store_tool_result':
    case 'after_tool_call_success':
    case 'after_tool_call_failure': {
      if (answer === before || (answer === null && hook !== 'before_store_tool_result'))
        return { answer }
      const { result, isError } = object(answer)
      if (typeof isError !== 'boolean')
        throw wrong(`(${hook}) returned no \`isError\` that is true or false`)
      try {
        return { answer: { result: toResultJson(result), isError } }
      } catch (error) {
        throw wrong(`(${hook}) returned a result that is not JSON: ${messageOf(error)}`)
      }
    }
    case 'after_thread_created':
    case 'after_subagent_created':
    case 'after_create_message':
    case 'after_update_message':
    case 'tool_call_started':
    case 'tool_call_done':
      return { answer } // these only observe
    default:
      return hook satisfies never
  }
}
function idsOfCalls(message: Message): readonly string[] {
  const calls = message.type === 'assistant' ? (message.toolCalls ?? []) : []
  return calls.map(({ toolCallId }) => toolCallId)
}
/** Checks a message and returns it; a message of another copy of the library is converted. */
function readMessage(value: unknown): Message {
  if (typeof value !== 'object' || value === null) throw new Error(`it is ${typeName(value)}`)
  const json = messageToJSON(value as Message)
  JSON.stringify(json) // throws for what the log and the vendors cannot store
  const message = messageFromJSON(json)
  const ids = idsOfCalls(message)
  if (new Set(ids).size < ids.length) throw new Error('two of its calls have the same id')
  const isOurs = [UserMessage, AssistantMessage, ToolResultMessage].some(
    (one) => value instanceof one,
  )
  return isOurs ? (value as Message) : message
}
/** Names the type of a value for error texts, without its content, which may be secret. */
function typeName(value: unknown): string {
  return value === null
    ? 'null'
    : Array.isArray(value)
      ? 'a list'
      : `a value of type ${typeof value}`
}
