import { readHookAnswer, HookAnswerError } from './read-answer.ts'
import type { HookName, HookSignatures } from '../definitions/hooks.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { DrainContext } from '../context/drain-context.ts'
import { type ChangesWrite, writeOf } from '../thread/changes.ts'
import { type Message, messageFromJSON, messageToJSON } from '@skein/ai'
import { linkAbort, type MessageJSON, messageOf } from '@skein/base'
import type { RuntimeEvent, RuntimeMessageAdded } from '../contract/event.ts'
import type { StoredMessage } from '../contract/thread-state.ts'
import type { FacadeChanges } from '../thread/facade.ts'
import { storedMessage } from '../thread/messages.ts'

/** The type of a hook's return value, without void. */
type HookAnswer<Name extends HookName> = Exclude<Awaited<ReturnType<HookSignatures[Name]>>, void>

/** One place where hooks run: the side of the conversation, the kind of hook, and how answers change a value. */
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
          : readHookAnswer(context, hook, answer, args(value).at(-1))
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

/** The error of `within` for work that took too long. The work itself may still run. */
export class TimeLimitError extends Error {}

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
  // `AbortSignal.any` is not used, because Node keeps such a signal, and all that its listeners refer to, for
  // as long as it has a listener.
  const unlink = linkAbort([outer], controller)
  let timer: ReturnType<typeof setTimeout> | undefined
  let stop: (() => void) | undefined
  const tooLate = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    const late = new TimeLimitError(`it took longer than ${timeoutMs} ms`)
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

type Updated = Extract<RuntimeEvent, { type: 'message_updated' }>

/**
 * Converts the changes of a tool or a scheduled effect into a write. Their messages first pass the hooks of the
 * side of the conversation. Messages that a hook wrote do not (see `writeOf`), because hooks could otherwise
 * call each other for ever.
 */
export async function hookedWriteOf(
  context: DrainContext,
  changes: FacadeChanges,
  side: ResolvedSide | undefined,
): Promise<ChangesWrite> {
  const write = await writeOf(context, changes)
  if (!side) return write
  const events: RuntimeEvent[] = []
  for (const event of write.events) {
    if (event.type === 'message_added') events.push(await beforeCreate(context, side, event))
    else if (event.type === 'message_updated') events.push(await beforeUpdate(context, side, event))
    else events.push(event)
  }
  return { ...write, events }
}

/**
 * Runs the `before_create_message` hooks, which every message passes before it is stored. The message keeps
 * its id.
 */
export async function beforeCreate(
  context: DrainContext,
  side: ResolvedSide,
  added: RuntimeMessageAdded,
): Promise<RuntimeMessageAdded> {
  if (!hasHook(side, 'before_create_message')) return added
  const before = toStored(added)
  const message = await runHooks(
    context,
    {
      side,
      name: 'before_create_message',
      args: (value: StoredMessage) => [value],
      fold: (value, { message }) => ({ ...value, message }),
    },
    before,
  )
  if (message === before) return added
  const json = messageToJSON(message.message)
  return { ...added, message: { ...json, id: before.id } }
}

/**
 * Runs the `before_update_message` hooks. The message keeps its type and its calls, because results in the
 * log belong to those calls.
 */
async function beforeUpdate(
  context: DrainContext,
  side: ResolvedSide,
  event: Updated,
): Promise<Updated> {
  if (!hasHook(side, 'before_update_message')) return event
  const before = messageFromJSON(event.message)
  const message = await runHooks(
    context,
    {
      side,
      name: 'before_update_message',
      args: (value: Message) => [event.messageId, value],
      fold: (_, answer) => answer,
    },
    before,
  )
  if (message === before) return event
  const json = messageToJSON(message)
  const { toolCalls } = event.message as { readonly toolCalls?: unknown }
  return { ...event, message: { ...json, id: event.messageId, toolCalls } as MessageJSON }
}

/** Whether the side of the conversation has a hook of one of these kinds. */
export function hasHook({ hooks }: ResolvedSide, ...kinds: readonly HookName[]): boolean {
  return hooks.some(({ hook }) => kinds.includes(hook))
}

/** Runs the hooks for messages that were stored: `after_create_message`, `after_update_message`. */
export async function afterStored(
  context: DrainContext,
  side: ResolvedSide,
  events: readonly RuntimeEvent[],
): Promise<void> {
  for (const event of events) {
    if (event.type === 'message_added') {
      if (!hasHook(side, 'after_create_message')) continue
      const stored = toStored(event)
      await runHooks(
        context,
        { side, name: 'after_create_message', args: () => [stored] },
        undefined,
      )
    }
    if (event.type !== 'message_updated') continue
    const stored = storedMessage(context.state, event.messageId)
    if (!stored) continue
    await runHooks(context, { side, name: 'after_update_message', args: () => [stored] }, undefined)
  }
}

function toStored(added: RuntimeMessageAdded): StoredMessage {
  const {
    at,
    turnId,
    side,
    isSilent = false,
    attachments = [],
    subagentId,
    metadata,
    delivery,
  } = added
  const message = messageFromJSON(added.message)
  const { id } = message
  return { id, message, side, isSilent, at, turnId, attachments, subagentId, metadata, delivery }
}
