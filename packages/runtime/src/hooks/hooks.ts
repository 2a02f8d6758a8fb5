import type { HookName, HookSignatures } from '../definitions/hooks.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { HookDefinition } from '../definitions/types.ts'
import { RuntimeError } from '../contract/error.ts'
import type { DrainContext } from '../contract/context.ts'
import { writeOf } from '../thread/changes.ts'
import {
  AssistantMessage,
  type Message,
  messageFromJSON,
  messageToJSON,
  ToolResultMessage,
  toResultJson,
  UserMessage,
} from '@skein/ai'
import { linkAbort, messageOf } from '@skein/base'
import type { StoredMessage } from '../contract/thread-state.ts'

/** The type of a hook's return value, without void. */
type HookAnswer<Name extends HookName> = Exclude<Awaited<ReturnType<HookSignatures[Name]>>, void>

/** One place where hooks run: the side, the kind of hook, and how the hooks' return values change a value. */
interface HookUse<Name extends HookName, T> {
  readonly side: ResolvedSide
  readonly name: Name
  /** Makes the arguments of a hook from the value that the previous hooks returned. */
  readonly args: (value: T) => readonly unknown[]
  /**
   * Applies the return value of a hook to the value. It is not called for hooks that return nothing, or
   * something of the wrong shape.
   */
  readonly fold?: (value: T, answer: HookAnswer<Name>, hookId: string) => T
}

/** Thrown when a hook asks to end the session before a request is sent to the model. */
export class HookBlockedError extends Error {}

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
 * Runs the hooks of one kind in the order in which they are listed. The changes that a hook makes in the
 * thread are committed as soon as it returns. If a hook throws, takes too long or returns something of the
 * wrong shape, the error is written to the log, its changes and its answer are dropped, and the next hook
 * runs.
 */
export async function runHooks<Name extends HookName, T>(
  context: DrainContext,
  { side, name, args, fold }: HookUse<Name, T>,
  value: T,
): Promise<T> {
  for (const hook of side.hooks) {
    if (hook.hook !== name) continue
    const facade = context.facade(side)
    try {
      const execute = hook.execute as (...all: unknown[]) => unknown // the kind of hook was checked above
      const timeoutMs = hook.timeoutMs ?? context.environment.limits.hookTimeoutMs
      const answer = await within(timeoutMs, async () =>
        context.runUserCode({ kind: 'hook', name: hook.id }, () =>
          execute(facade.state, ...args(value)),
        ),
      )
      const given =
        answer === undefined || !fold
          ? undefined
          : readAnswer(context, hook, answer, args(value).at(-1))
      const write = await writeOf(context, facade.takeChanges())
      if (write.events.length + write.others.length > 0 || write.values?.user)
        await context.commit(`hook_${hook.hook}`, write)
      // The cast is needed, because the type of the answer depends on `name`.
      if (given && fold) value = fold(value, given.answer as never, hook.id)
    } catch (error) {
      if (error instanceof HookAnswerError) {
        await reportAnswer(context, error)
        continue
      }
      const isBlock = (error as { readonly block?: unknown } | null)?.block === true
      if (name === 'prefilter_llm_history' && isBlock) throw new HookBlockedError(messageOf(error))
      const message = `The hook "${hook.id}" failed: ${messageOf(error)}`
      const raised = {
        type: 'error_raised',
        at: context.at(),
        code: 'HOOK_FAILED',
        message,
      } as const
      await context.commit('hook_failed', { events: [raised] })
    }
  }
  return value
}

/** Writes a wrong answer of a hook to the log and reports it to the operator. */
export async function reportAnswer(context: DrainContext, error: HookAnswerError): Promise<void> {
  const { code, message, hint } = error
  const raised = { type: 'error_raised', at: context.at(), code, message, hint } as const
  await context.commit('hook_failed', { events: [raised] })
  context.environment.report(error, context.head.id)
}

/**
 * Checks what a hook returned. `before` is the value that the hook was given to change. Throws
 * `HookAnswerError` if the answer has the wrong shape. Messages that are equal in shape but made by another
 * copy of the library are converted.
 */
function readAnswer(
  { state: { callPlaces } }: DrainContext,
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
      const known = new Set(list(before))
      const read = list(answer).map((one) => {
        if (known.has(one)) return one
        const stored = object(one)
        if (typeof stored['id'] !== 'string')
          throw wrong(`(${hook}) returned a message without an id`)
        return { ...stored, message: message(stored['message']) }
      })
      return { answer: read }
    }
    case 'prefilter_llm_history': {
      const known = new Set(list(before))
      return { answer: list(answer).map((one) => (known.has(one) ? one : message(one))) }
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
    default:
      return { answer } // the other kinds of hooks only observe
  }
}

function idsOfCalls(message: Message): readonly string[] {
  const called = message.type === 'assistant' ? (message.toolCalls ?? []) : []
  return called.map(({ toolCallId }) => toolCallId)
}

/** Checks a message and returns it; a message of another copy of the library is converted. */
function readMessage(value: unknown): Message {
  if (typeof value !== 'object' || value === null) throw new Error(`it is ${typeName(value)}`)
  const json = messageToJSON(value as Message)
  JSON.stringify(json) // throws for what the log and the vendors cannot store
  const read = messageFromJSON(json)
  const ids = idsOfCalls(read)
  if (new Set(ids).size < ids.length) throw new Error('two of its calls have the same id')
  const isOurs = [UserMessage, AssistantMessage, ToolResultMessage].some(
    (one) => value instanceof one,
  )
  return isOurs ? (value as Message) : read
}

/**
 * Returns the result of `work`, or rejects when it takes longer than `timeoutMs`. The signal that `work`
 * receives is aborted after that time or when the outer signal aborts; an outer abort rejects as well.
 */
export async function within<T>(
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  const controller = new AbortController()
  const { signal } = controller
  // Not `AbortSignal.any`: Node keeps such a signal, and all that its listeners refer to, for as long as it
  // has a listener.
  const unlink = linkAbort([outer], controller)
  let timer: ReturnType<typeof setTimeout> | undefined
  let stop: (() => void) | undefined
  const tooLate = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    const late = new Error(`it took longer than ${timeoutMs} ms`)
    timer = setTimeout(() => controller.abort(late), timeoutMs)
  })
  try {
    return await Promise.race([work(signal), tooLate])
  } finally {
    clearTimeout(timer)
    unlink()
    if (stop) signal.removeEventListener('abort', stop)
  }
}

/** Whether the side has a hook of one of these kinds. */
export function hasHook({ hooks }: ResolvedSide, ...kinds: readonly HookName[]): boolean {
  return hooks.some(({ hook }) => kinds.includes(hook))
}

/** Names the type of a value for messages; its content may be secret. */
function typeName(value: unknown): string {
  return value === null
    ? 'null'
    : Array.isArray(value)
      ? 'a list'
      : `a value of type ${typeof value}`
}
