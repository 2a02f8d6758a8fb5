import type { JsonObject } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import {
  agentRegistrations,
  EVENT_VERSION,
  type MessageQueued,
  type RuntimeEvent,
} from '../contract/event.ts'
import type { EventOf } from '../contract/event-of.ts'
import type { CreateThread, ForkedThread, ForkThread } from '../contract/runtime-api.ts'
import { startsSomething, type EnvEntry, type KernelState } from '../state/kernel-state.ts'
import { noPrice, unpricedFor } from '../definitions/load/prices.ts'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import { envContext } from '../secrets/vault.ts'
import { isStoreError, type ThreadHead } from '../store/store.ts'
import { createEnvReader, envSet } from '../thread/env.ts'
import { checkedValue, checkValueKey } from '../thread/values.ts'
import { checkedMetadata, checkLabel, checkTags } from './labels.ts'
import { load, type ApiContext } from './api-context.ts'
import { redacted } from './redacted-changes.ts'
import { toRuntimeError } from './edit-thread.ts'
import { editsAfter, rootCreated, storeCopy } from './copied-thread.ts'
import { isCopied } from './import-thread.ts'
import { queuedMessage } from './messages-api.ts'

/** Creates a thread with its variables, values and first message, in one commit. Returns its id. */
export async function createThread(context: ApiContext, thread: CreateThread): Promise<string> {
  const agent = context.registry.agent(agentName(thread))
  const { tenant = 'default', owner = null, title = null, tags = [], clientId = null } = thread
  const labels = { tenant, owner, title, 'client id': clientId }
  for (const [name, text] of Object.entries(labels))
    if (text !== null) checkLabel(text, `The ${name} of the thread`)
  checkTags(tags)
  const { budget = {} } = thread
  const missing = unpricedFor(budget, agent, context.registry.agents).flat()
  if (missing.length > 0)
    throw new RuntimeError(`The budget in US dollars ${noPrice(missing)}.`, {
      code: 'INPUT_INVALID',
      hint: 'Limit tokens with maxTokens, or give the models prices.',
    })
  if (thread.metadata && Object.hasOwn(thread.metadata, 'forked_from'))
    throw new RuntimeError('The metadata of a thread cannot have "forked_from".', {
      code: 'INPUT_INVALID',
      hint: 'The runtime writes it into forks. Fork the thread, or use another name.',
    })
  const message = thread.message === undefined ? undefined : queuedMessage(context, thread.message)
  const path = message?.attachments?.[0]
  if (path !== undefined)
    throw new RuntimeError(`The first message names the file ${path}, which cannot exist yet.`, {
      code: 'FILE_NOT_FOUND',
      hint: 'Create the thread, write the file, then send the message.',
    })
  const { store, clock } = context
  const id = context.ids()
  const now = clock.now()
  const create = {
    tenant,
    owner,
    agent: agent.name,
    parentId: null,
    rootId: id,
    title,
    tags,
    clientId,
    createdAt: now,
  }
  if (message) await context.spending?.checkSend({ tenant, owner })
  const append = firstEvents(context, { id, thread, agent, message })
  const wakes = message !== undefined || startsSomething(agent)
  try {
    const change = { id, create, append, wake: wakes ? { by: now } : undefined }
    const threads = redacted(context, secretsIn(id, agent, append), [change])
    await context.commit({ point: 'create_thread', threads })
  } catch (error) {
    // If a client creates a thread again with the id that it chose (`clientId`), it gets the existing thread,
    // provided that the agent is the same.
    const isTaken = isStoreError(error, 'CLIENT_ID_TAKEN') && clientId !== null
    const known = isTaken ? await store.headByClientId(tenant, clientId, owner) : undefined
    if (known && known.agent === agent.name) return known.id
    throw toRuntimeError(error)
  }
  return id
}

/** Returns the name of the agent of a new thread, which may be named or given as its definition. */
function agentName({ agent }: Pick<CreateThread, 'agent'>): string {
  return typeof agent === 'object' ? agent.name : agent
}

/** Returns the part of the new thread's state that names its secrets. */
function secretsIn(
  threadId: string,
  { name: agent }: ResolvedAgent,
  events: readonly RuntimeEvent[],
): Pick<KernelState, 'agent' | 'env' | 'envSeq' | 'threadId'> {
  const env = new Map<string, EnvEntry>()
  for (const event of events)
    if (event.type === 'env_set' && event.value !== null)
      env.set(event.name, { type: event.valueType, value: event.value, isScoped: false })
  return { threadId, agent, env, envSeq: 0 }
}

interface First {
  readonly id: string
  readonly thread: CreateThread
  readonly agent: ResolvedAgent
  readonly message: MessageQueued | undefined
}

function firstEvents(context: ApiContext, { id, thread, agent, message }: First): RuntimeEvent[] {
  const { vault } = context
  const at = context.at()
  const { title, metadata, budget, env = {}, secrets = {}, values = {} } = thread
  const kernel = { env: new Map() }
  const reader = createEnvReader({ kernel, agent, side: 'a', instanceEnv: {}, vault, threadId: id })
  const set = (name: string, value: string, isSecret: boolean): RuntimeEvent =>
    envSet({ name, value, valueType: isSecret ? 'secret' : 'text', threadId: id, vault, at })
  return [
    {
      type: 'thread_created',
      at,
      threadId: id,
      agent: agent.name,
      version: EVENT_VERSION,
      depth: 0,
      title,
      metadata: metadata && checkedMetadata(metadata, 'the thread'),
      budget,
    },
    ...agentRegistrations(agent, at),
    // A variable that the agent declares as a secret is stored as a secret, even when it was passed in `env`.
    ...Object.entries(env).map(([name, value]) => set(name, value, reader.isSecret(name))),
    ...Object.entries(secrets).map(([name, value]) => set(name, value, true)),
    ...Object.entries(values).map(([key, value]) => {
      checkValueKey(key)
      return { type: 'value_set', at, key, value: checkedValue(key, value) } as const
    }),
    ...(message ? [message] : []),
  ]
}

/** Copies a thread up to a message into a new thread. File contents are shared by their hashes. */
export async function forkStoredThread(
  context: ApiContext,
  threadId: string,
  { upTo, before, owner, title, message, isContinued = false }: ForkThread = {},
): Promise<Pick<ForkedThread, 'runsAgain'> & { readonly head: ThreadHead }> {
  for (const [name, text] of Object.entries({ owner, title }))
    if (text !== undefined) checkLabel(text, `The ${name} of the thread`)
  const { head, state } = await load(context, threadId)
  if (state.isErased) throw cannotFork(`Thread ${threadId} was erased.`)
  const log = (await context.store.events(threadId)).map(({ event }) => event)
  if (upTo !== undefined && before !== undefined)
    throw new RuntimeError('A fork ends with a message or before one, not both.', {
      code: 'INPUT_INVALID',
      hint: 'Give `upTo` or `before`.',
    })
  const end = before === undefined ? cutAfter(log, upTo) : cutBefore(log, before)
  const [first, ...rest] = log.slice(0, end)
  if (first?.type !== 'thread_created') throw cannotFork(`Thread ${threadId} has no beginning.`)
  const id = context.ids()
  const copy = { id, title: title ?? head.title }
  const metadata = {
    ...first.metadata,
    forked_from: forkPlace(threadId, upTo ?? lastMessage(log.slice(0, end))),
  }
  const { vault } = context
  const by = owner ?? head.owner
  const next =
    message === undefined
      ? isContinued &&
        ({ type: 'resume_requested', at: context.at(), by: by ?? undefined } as const)
      : queuedMessage(context, message)
  if (next) await context.spending?.checkSend({ tenant: head.tenant, owner: by })
  const made = await storeCopy(context, {
    ...copy,
    tenant: head.tenant,
    owner: by,
    next: next || undefined,
    tags: head.tags,
    events: [
      { ...rootCreated(first, copy), at: first.at, metadata },
      ...[...rest.filter(isHistory), ...editsAfter(log, end)].map((event) => {
        if (event.type !== 'env_set' || event.valueType !== 'secret' || event.value === null)
          return event
        // An encrypted secret can be opened only for the thread whose id it was encrypted with, so it is
        // encrypted again for the copy.
        const secret = vault.open(event.value, envContext(threadId, event.name))
        return { ...event, value: vault.seal(secret, envContext(id, event.name)) }
      }),
    ],
    point: 'fork_thread',
  })
  return { head: made, runsAgain: workIn(context, log.slice(end)) }
}

function forkPlace(threadId: string, messageId: string | undefined): JsonObject {
  return messageId === undefined
    ? { thread_id: threadId }
    : { thread_id: threadId, message_id: messageId }
}

/** Returns the id of the last message of a copy; undefined for a copy without messages. */
function lastMessage(log: readonly RuntimeEvent[]): string | undefined {
  const last = log.findLast((event) => event.type === 'message_added')
  return last?.type === 'message_added' ? last.message.id : undefined
}

/** Counts what a thread did in a part of its log: requests to models, children, and calls of tools by risk. */
function workIn({ registry }: ApiContext, log: readonly RuntimeEvent[]): ForkedThread['runsAgain'] {
  const calls = new Map<string, number>()
  for (const event of log)
    if (event.type === 'tool_execution_start')
      calls.set(event.toolName, (calls.get(event.toolName) ?? 0) + 1)
  const countOf = (type: RuntimeEvent['type']): number =>
    log.filter((event) => event.type === type).length
  return {
    modelCalls: countOf('model_requested'),
    children: countOf('subagent_created'),
    calls: Array.from(calls, ([toolName, count]) => {
      const risk = registry.tools.get(toolName)?.governance.risk
      return { toolName, count, risk }
    }),
  }
}

const BEGINNINGS: ReadonlySet<RuntimeEvent['type']> = new Set([
  'message_added',
  'message_queued',
  'step_start',
  'turn_start',
  'session_start',
])

/**
 * Returns the index where the copy ends: after the message, the results of its calls and the end of its turn.
 */
function cutAfter(log: readonly RuntimeEvent[], messageId: string | undefined): number {
  if (messageId === undefined) return log.length
  const place = placeOf(log, messageId)
  const next = log.findIndex((event, index) => index > place && BEGINNINGS.has(event.type))
  return next < 0 ? log.length : next
}

/** Returns the index where a copy without the message ends: after the message before it, or at the beginning. */
function cutBefore(log: readonly RuntimeEvent[], messageId: string): number {
  const earlier = log.slice(0, placeOf(log, messageId))
  const last = earlier.findLast((event) => event.type === 'message_added')
  if (last?.type === 'message_added') return cutAfter(earlier, last.message.id)
  const begun = earlier.findIndex((event) => BEGINNINGS.has(event.type))
  return begun < 0 ? earlier.length : begun
}

function placeOf(log: readonly RuntimeEvent[], messageId: string): number {
  const place = log.findLastIndex(
    (event) => event.type === 'message_added' && event.message.id === messageId,
  )
  if (place >= 0) return place
  throw new RuntimeError(`There is no message ${messageId} to fork at.`, {
    code: 'MESSAGE_NOT_FOUND',
    hint: 'Messages that still wait in the queue are not part of the history.',
  })
}

/**
 * Returns false for events that a fork does not copy: model requests and their costs, queued messages, stops
 * and resumes, requests for variables, and events that are never copied (`isCopied`).
 */
function isHistory(event: RuntimeEvent): boolean {
  switch (event.type) {
    case 'message_queued':
    case 'message_unqueued':
    case 'stop_requested':
    case 'resume_requested':
    case 'model_requested':
    case 'model_answered':
    case 'inference_recorded':
    case 'variables_requested':
    case 'variables_provided':
    case 'variables_settled':
      return false
    default:
      event satisfies History
      return isCopied(event)
  }
}

function cannotFork(message: string): RuntimeError {
  return new RuntimeError(message, {
    code: 'INPUT_INVALID',
    hint: 'Fork a thread that still has its history.',
  })
}

/** Events that a fork copies, unless `isCopied` excludes them. */
// prettier-ignore
type History = EventOf<
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_start' | 'session_end' | 'session_failing' | 'write_undone' | 'undo_decided' |
  'message_added' | 'message_updated' | 'call_changed' | 'message_removed' | 'delivery_changed' |
  'turn_start' | 'turn_end' | 'step_start' | 'step_reset' | 'step_failed' | 'text_delta' |
  'tool_execution_start' | 'tool_execution_end' | 'late_result' | 'call_reset' |
  'interrupt_opened' | 'interrupt_answered' | 'subagent_created' | 'subagent_updated' |
  'subagent_ended' | 'agent_handoff' | 'context_compacted' | 'gate_decided' | 'error_raised' |
  'usage_recorded' | 'agent_registered' | 'step_end' | 'reasoning_delta' | 'tool_call_delta' |
  'tool_execution_progress' | 'tool_call_hidden' | 'file_written' | 'file_removed' |
  'source_added' | 'evidence_added' | 'custom_event' | 'session_stop_requested' |
  'immediate_done' | 'turn_cut' | 'value_set' | 'env_set' | 'effect_scheduled' |
  'effect_started' | 'effect_ended' | 'grant_made' | 'grant_revoked'
>
