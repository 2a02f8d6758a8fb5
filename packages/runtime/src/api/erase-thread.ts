import type { MessageJSON } from '@skein/base'
import type { RuntimeEvent } from '../event.ts'
import type { ThreadHead } from '../store/store.ts'
import { headOf, type ApiContext } from './api-context.ts'
import { terminateThread } from './control.ts'
import { descendantsOf } from '../store/thread-head.ts'

/**
 * Removes the contents of a thread and its descendants. What is left says that something happened, when,
 * by which agent and at what cost, and nothing of what was said.
 */
export async function eraseThread(
  context: ApiContext,
  threadId: string,
  { by }: { readonly by?: string } = {},
): Promise<void> {
  for (const head of await ended(context, threadId)) {
    if (head.lifecycle === 'erased') continue
    await eraseOne(context, head, by)
  }
}

/** Terminates and removes a thread and its descendants, leaves first: a crash leaves no orphans. */
export async function removeThread(context: ApiContext, threadId: string): Promise<void> {
  for (const head of await ended(context, threadId)) {
    await context.store.remove(head.id)
    context.folds.forget(head.id)
    context.live.removed({ ...head, lifecycle: 'erased' })
  }
}

/** The thread and its descendants, all at rest, leaves first. */
async function ended(context: ApiContext, threadId: string): Promise<readonly ThreadHead[]> {
  await terminateThread(context, threadId)
  const head = await headOf(context, threadId)
  const below = await descendantsOf(context, head)
  // A child that a detached parent left behind is still at work.
  for (const { id } of below) await terminateThread(context, id)
  return [head, ...below].toReversed()
}

async function eraseOne(
  context: ApiContext,
  head: ThreadHead,
  by: string | undefined,
): Promise<void> {
  const events = await context.store.events(head.id)
  const skeleton: RuntimeEvent[] = [
    ...events.flatMap(({ event }) => bare(event)),
    {
      type: 'thread_erased',
      at: context.at(),
      eventCount: events.length,
      ...(by !== undefined && { by }),
    },
  ]
  await context.store.erase(head.id, skeleton)
  context.folds.forget(head.id)
  const erased = await context.store.head(head.id)
  context.live.removed(erased ?? { ...head, lifecycle: 'erased' })
}

/** An event without anything that was said, shown, read or written. Whatever is not named here is gone. */
function bare(event: RuntimeEvent): RuntimeEvent[] {
  const { at } = event
  switch (event.type) {
    case 'thread_created': {
      const { type, threadId, agent, version, depth, parent, parentThreadId } = event
      const links = { ...(parent && { parent }), ...(parentThreadId && { parentThreadId }) }
      return [{ type, at, threadId, agent, version, depth, ...links }]
    }
    case 'agent_registered':
    case 'turn_start':
    case 'step_start':
    case 'step_end':
    case 'thread_terminated':
    case 'usage_recorded':
    case 'model_answered':
      return event.type === 'model_answered' ? [withoutError(event)] : [event]
    case 'agent_handoff': {
      const { type, turnId, fromAgentId, toAgentId } = event
      return [{ type, at, turnId, fromAgentId, toAgentId }]
    }
    case 'turn_end': {
      const { type, turnId, outcome } = event
      return [{ type, at, turnId, outcome }]
    }
    case 'session_start': {
      const { type, sessionId, agent } = event
      return [{ type, at, sessionId, agent }]
    }
    case 'session_end': {
      const { type, sessionId, outcome, reason } = event
      return [{ type, at, sessionId, outcome, reason }]
    }
    case 'message_added': {
      const { type, turnId, side, stepId, agentId, usage, costUsd, message } = event
      return [
        {
          type,
          at,
          turnId,
          side,
          message: emptied(message),
          ...(stepId !== undefined && { stepId }),
          ...(agentId !== undefined && { agentId }),
          ...(usage && { usage }),
          ...(costUsd !== undefined && { costUsd }),
        },
      ]
    }
    case 'tool_execution_start': {
      const { type, turnId, toolCallId, toolName, epoch } = event
      return [{ type, at, turnId, toolCallId, toolName, epoch }]
    }
    case 'tool_execution_end': {
      const { type, turnId, toolCallId, toolName, outcome } = event
      return [{ type, at, turnId, toolCallId, toolName, outcome, result: null }]
    }
    case 'subagent_created': {
      const { type, reference, name, relation, parentCommunication } = event
      return [{ type, at, reference, name, relation, parentCommunication }]
    }
    case 'subagent_ended': {
      const { type, reference, outcome } = event
      return [{ type, at, reference, outcome }]
    }
    default:
      return []
  }
}

function withoutError(event: Extract<RuntimeEvent, { type: 'model_answered' }>): RuntimeEvent {
  const { error, ...rest } = event
  return error ? { ...rest, error: { code: error.code, message: '' } } : rest
}

function emptied(message: MessageJSON): MessageJSON {
  const { id, timestamp } = message
  switch (message.type) {
    case 'user':
      return { id, type: 'user', timestamp, content: [] }
    case 'assistant': {
      const toolCalls = message.toolCalls?.map(({ toolCallId, toolName }) => ({
        toolCallId,
        toolName,
        arguments: {},
      }))
      return { id, type: 'assistant', timestamp, content: [], ...(toolCalls && { toolCalls }) }
    }
    case 'tool_result': {
      const results = message.results.map(({ toolCallId }) => ({ toolCallId, result: null }))
      return { id, type: 'tool_result', timestamp, results }
    }
  }
}
