import { type Message, messageFromJSON, messageToJSON } from '@skein/ai'
import type { MessageJSON } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent, RuntimeMessageAdded } from '../contract/event.ts'
import type { StoredMessage } from '../contract/thread-state.ts'
import type { HookName, HookSignatures } from '../definitions/hooks.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { HookAnswerError } from './read-answer.ts'
import { type HookPlace, reportHookAnswer, runHook } from './run-hook.ts'
import { type ChangesWrite, writeOf } from '../thread/changes.ts'
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

/**
 * Runs the hooks of one kind in the order in which they are listed (see `runHook`). A hook that fails changes nothing,
 * and the next one runs.
 */
export async function runHooks<Name extends HookName, T>(
  context: DrainContext,
  { side, name, args, fold }: HookUse<Name, T>,
  value: T,
): Promise<T> {
  for (const hook of side.hooks) {
    if (hook.hook !== name) continue
    const result = await runHook(hookPlace(context, side), hook, args(value))
    // The cast is needed, because the type of the answer depends on `name`.
    if (result && fold) value = fold(value, result.answer as never, hook.id)
  }
  return value
}

/** Writes a wrong answer of a hook to the log and reports it to the operator. */
export async function reportAnswer(context: DrainContext, error: HookAnswerError): Promise<void> {
  await reportHookAnswer(reportsOf(context), error)
}

function hookPlace(context: DrainContext, side: ResolvedSide): HookPlace {
  return {
    ...reportsOf(context),
    get state() {
      return context.state
    },
    timeoutMs: context.environment.limits.hookTimeoutMs,
    async withState(hook, work) {
      const facade = context.facade(side)
      const result = await work(facade.state)
      const write = await writeOf(context, facade.takeChanges())
      if (write.events.length + write.others.length > 0 || write.values?.user)
        await context.commit(`hook_${hook.hook}`, write)
      return result
    },
    runUserCode: (code, work) => context.runUserCode(code, work),
  }
}

function reportsOf(context: DrainContext): Pick<HookPlace, 'at' | 'raise' | 'report'> {
  return {
    at: () => context.at(),
    raise: (event) => context.commit('hook_failed', { events: [event] }),
    report: (error) => context.environment.report(error, context.head.id),
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

/** Whether the side of the conversation has a hook of this kind. */
function hasHook({ hooks }: ResolvedSide, name: HookName): boolean {
  return hooks.some(({ hook }) => hook === name)
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
      const message = toStored(event)
      await runHooks(
        context,
        { side, name: 'after_create_message', args: () => [message] },
        undefined,
      )
    }
    if (event.type !== 'message_updated') continue
    const message = storedMessage(context.state, event.messageId)
    if (!message) continue
    await runHooks(
      context,
      { side, name: 'after_update_message', args: () => [message] },
      undefined,
    )
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
