import type { HookName, HookSignatures } from '../definitions/hooks.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { DrainContext } from '../contract/context.ts'
import { type ChangesWrite, writeOf } from '../thread/changes.ts'
import { type Message, messageFromJSON, messageToJSON } from '@skein/ai'
import { messageOf, type MessageJSON } from '@skein/base'
import type { RuntimeEvent, RuntimeMessageAdded } from '../contract/event.ts'
import type { StoredMessage } from '../contract/thread-state.ts'
import type { FacadeChanges } from '../thread/facade.ts'
import { storedMessage } from '../thread/messages.ts'

/** The type of a hook's return value, without void. */
type HookAnswer<Name extends HookName> = Exclude<Awaited<ReturnType<HookSignatures[Name]>>, void>

/** One place where hooks run: the side, the kind of hook, and how the hooks' return values change a value. */
interface HookUse<Name extends HookName, T> {
  readonly side: ResolvedSide
  readonly name: Name
  /** Makes the arguments of a hook from the value that the previous hooks returned. */
  readonly args: (value: T) => readonly unknown[]
  /** Applies the return value of a hook to the value. It is not called for hooks that return nothing. */
  readonly fold?: (value: T, answer: HookAnswer<Name>) => T
}

/** Thrown when a hook asks to end the session before a request is sent to the model. */
export class HookBlockedError extends Error {}

/**
 * Runs the hooks of one kind in the order in which they are listed. The changes that a hook makes in the
 * thread are committed as soon as it returns. If a hook throws or takes too long, the error is written to the
 * log, its changes are dropped, and the next hook runs.
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
      const write = await writeOf(context, facade.takeChanges())
      if (write.events.length + write.others.length > 0)
        await context.commit(`hook_${hook.hook}`, write)
      // The cast is needed, because the type of the answer depends on `name`.
      if (answer !== undefined && fold) value = fold(value, answer as never)
    } catch (error) {
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
  const signal = outer ? AbortSignal.any([outer, controller.signal]) : controller.signal
  let timer: ReturnType<typeof setTimeout> | undefined
  const tooLate = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    const late = new Error(`it took longer than ${timeoutMs} ms`)
    timer = setTimeout(() => controller.abort(late), timeoutMs)
  })
  try {
    return await Promise.race([work(signal), tooLate])
  } finally {
    clearTimeout(timer)
  }
}

type Updated = Extract<RuntimeEvent, { type: 'message_updated' }>

/**
 * Converts the changes of a tool or an effect into a write. Their messages pass the hooks of the side first;
 * messages that a hook wrote do not (see `writeOf`), because hooks could otherwise call each other for ever.
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
  if (!side.hooks.some(({ hook }) => hook === 'before_create_message')) return added
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
  if (!side.hooks.some(({ hook }) => hook === 'before_update_message')) return event
  const before = messageFromJSON(event.message)
  const message = await runHooks(
    context,
    {
      side,
      name: 'before_update_message',
      args: (value: Message) => [event.messageId, value],
      fold: (value, answer) => (answer.type === value.type ? answer : value),
    },
    before,
  )
  if (message === before) return event
  const json = messageToJSON(message)
  const { toolCalls } = event.message as { readonly toolCalls?: unknown }
  return { ...event, message: { ...json, id: event.messageId, toolCalls } as MessageJSON }
}

/** Runs the hooks for messages that were stored: `after_create_message`, `after_update_message`. */
export async function afterStored(
  context: DrainContext,
  side: ResolvedSide,
  events: readonly RuntimeEvent[],
): Promise<void> {
  for (const event of events) {
    if (event.type === 'message_added') {
      if (!side.hooks.some(({ hook }) => hook === 'after_create_message')) continue
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
  const { at, turnId, side, isSilent = false, attachments = [], subagentId, metadata } = added
  const message = messageFromJSON(added.message)
  const { id } = message
  return { id, message, side, isSilent, at, turnId, attachments, subagentId, metadata }
}
