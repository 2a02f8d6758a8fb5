import type { JsonObject } from '@skein/base'
import {
  agentRegistrations,
  EVENT_VERSION,
  type MessageQueued,
  type RuntimeEvent,
} from '../contract/event.ts'
import type { Relation, ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import { type EnvReader, scopedNames } from '../thread/env.ts'
import { envContext } from '../secrets/vault.ts'
import type { Blob, ThreadChange } from '../store/commit.ts'
import type { FileStat } from '../contract/thread-state.ts'
import { queuedText } from '../thread/changes.ts'
import type { DrainContext } from '../context/drain-context.ts'
import { runHooks } from '../hooks/hooks.ts'
import { type CopiedFiles, copyFiles } from '../thread/copied-files.ts'

/** The changes that create a child or send it a message. They are part of the commit of the call. */
export interface SpawnPlan {
  readonly reference: string
  /** Events for the log of the parent. */
  readonly events: readonly RuntimeEvent[]
  readonly others: readonly ThreadChange[]
  readonly blobs?: readonly Blob[]
  /** The id under which the call waits for the child (its interrupt); undefined if the call does not wait. */
  readonly interruptId?: string
}

/** A child to be created. */
export interface NewChild {
  readonly relation: Relation
  /** The agent that needs the child, if that is not the thread's agent any more. */
  readonly agent?: ResolvedAgent
  readonly env: EnvReader
  /** A name for this one child, because a parent may have several children of the same kind. */
  readonly name: string | undefined
  /** The first message; if undefined, the arguments as JSON are sent. */
  readonly message: string | undefined
  readonly attachments: readonly FileStat[]
  readonly arguments: JsonObject
  readonly toolCallId?: string
  /** Whether a call waits for the child's result. */
  readonly isAwaited: boolean
  readonly isImmediate?: boolean
  readonly spawnGroupId?: string
  /** Variables that a person provided after the call, by name. */
  readonly provided?: ReadonlyMap<
    string,
    { readonly type: 'text' | 'secret'; readonly value: string }
  >
}

/** Plans a child thread. Its first events are written in the same commit as the parent's record of it. */
export function planSpawn(context: DrainContext, child: NewChild): SpawnPlan {
  const { environment, head, state } = context
  const { relation, name, isAwaited, toolCallId, isImmediate, spawnGroupId } = child
  const at = context.at()
  const reference = environment.ids()
  const interruptId = isAwaited ? environment.ids() : undefined
  const agent = environment.registry.agent(relation.agent)
  const files = copyFiles(context, child.attachments, reference)
  // Files that are passed to the child get new paths there, so the arguments are rewritten (Standard Agents
  // §7.12).
  const from = relation.config.initAttachmentsProperty
  const argument = from === undefined ? undefined : child.arguments[from]
  const [path] = files.paths
  const paths = Array.isArray(argument) ? [...files.paths] : path
  const isLocal = from !== undefined && argument !== undefined && path !== undefined
  const args = isLocal ? { ...child.arguments, [from]: paths } : child.arguments
  const text = child.message ?? (Object.keys(args).length > 0 ? JSON.stringify(args) : 'Begin.')
  const now = environment.clock.now()
  const thread: ThreadChange = {
    id: reference,
    create: {
      tenant: head.tenant,
      owner: head.owner,
      agent: agent.name,
      parentId: head.id,
      rootId: head.rootId,
      title: name ?? null,
      tags: name === undefined ? [] : [`name:${name.slice(0, 120)}`],
      clientId: null,
      createdAt: now,
    },
    append: [
      {
        type: 'thread_created',
        at,
        version: EVENT_VERSION,
        threadId: reference,
        agent: agent.name,
        depth: state.depth + 1,
        parentThreadId: head.id,
        arguments: args,
        title: name,
        parent: {
          threadId: head.id,
          relation: relation.key,
          isBlocking: isAwaited || (isImmediate === true && relation.isBlocking),
          isResumable: relation.isResumable,
          communication: relation.communication,
          receives: relation.receives,
        },
      },
      ...agentRegistrations(agent, at),
      ...envEvents(context, child, reference),
      ...files.events,
      messageToChild(context, { text, files, relation, interruptId }),
    ],
    wake: { by: now },
  }
  const { title, description } = agent.definition
  const registration: RuntimeEvent = {
    type: 'subagent_created',
    at,
    reference,
    name: agent.name,
    relation: relation.key,
    description: description ?? relation.description,
    isBlocking: relation.isBlocking,
    isResumable: relation.isResumable,
    parentCommunication: relation.communication,
    title,
    threadName: name,
    turnId: state.session?.turn?.id,
    toolCallId,
    isImmediate: isImmediate || undefined,
    spawnGroupId,
  }
  return { reference, events: [registration], others: [thread], interruptId }
}

/**
 * Returns the events that set the child's variables: the thread's variables that every child inherits, the
 * variables that are scoped to this child, and the variables that this child requires.
 */
function envEvents(context: DrainContext, child: NewChild, reference: string): RuntimeEvent[] {
  const { relation, env, agent = context.agent, provided = new Map() } = child
  const { requiredVariables: required } = relation
  const names = new Map<string, boolean>()
  const scopedNamesOfBoth = new Set([context.agent, agent].flatMap((one) => [...scopedNames(one)]))
  for (const [name, { isScoped }] of context.state.env)
    if (!isScoped && !scopedNamesOfBoth.has(name)) names.set(name, false)
  for (const name of relation.scopedEnv) names.set(name, true)
  for (const { name } of required) names.set(name, true)
  return [...names].flatMap(([name, isScoped]) => {
    const entry = provided.get(name)
    const value = entry?.value ?? env.get(name)
    if (value === undefined) return []
    const isDeclared = required.some((one) => one.name === name && one.type === 'secret')
    const isSecret = entry?.type === 'secret' || env.isSecret(name) || isDeclared
    const { vault } = context.environment
    return [
      {
        type: 'env_set' as const,
        at: context.at(),
        name,
        valueType: isSecret ? ('secret' as const) : ('text' as const),
        value: isSecret ? vault.seal(value, envContext(reference, name)) : value,
        isScoped: isScoped || undefined,
      },
    ]
  })
}

/**
 * Returns the event that queues a message of the parent in the child, for that side of the child's
 * conversation which receives the parent's messages.
 */
export function messageToChild(
  context: DrainContext,
  {
    text,
    files,
    relation,
    interruptId,
  }: {
    readonly text: string
    readonly files: CopiedFiles
    readonly relation: Relation
    /** The id under which the parent's call waits for the answer (its interrupt). */
    readonly interruptId: string | undefined
  },
): RuntimeEvent {
  return queuedText(
    context,
    { text, files },
    {
      role: relation.receives === 'a' ? 'user' : 'assistant',
      resumes: true,
      metadata: { from: 'parent' },
      parentInterruptId: interruptId,
      callers: callersOf(context),
    },
  )
}

/** Returns the sessions that a child works for: the running one, and those that it works for itself. */
function callersOf({ state: { session }, head }: DrainContext): MessageQueued['callers'] {
  return session && [...session.callers, { threadId: head.id, sessionId: session.id }]
}

/**
 * Runs the hook `after_subagent_created` after a commit that created a child. A plan that only sent a message
 * is ignored.
 */
export async function afterSpawn(
  context: DrainContext,
  plan: SpawnPlan | undefined,
  side: ResolvedSide,
): Promise<void> {
  if (!plan?.others.some(({ create }) => create)) return
  const { reference } = plan
  const name = context.state.children.get(reference)?.created.name ?? ''
  const child = { reference, name }
  await runHooks(context, { side, name: 'after_subagent_created', args: () => [child] }, undefined)
}

/**
 * Throws when the child would be nested too deeply, or when there are already as many children of its kind as
 * allowed. Only the parent creates its children, one call at a time, so the count cannot change meanwhile.
 */
export function refuseBeyondLimits({ state, environment }: DrainContext, relation: Relation): void {
  const { depth } = environment.limits
  if (state.depth + 1 > depth)
    throw new Error(
      `Subagents may be nested ${depth} levels deep; this thread is on level ${state.depth}.`,
    )
  const live = [...state.children.values()].filter(
    ({ created: { relation: key }, lifecycle }) =>
      key === relation.key &&
      lifecycle !== 'terminated' &&
      lifecycle !== 'completed' &&
      lifecycle !== 'failed',
  )
  if (live.length < relation.maxInstances) return
  const references = live.map(({ created }) => created.reference).join(', ')
  throw new Error(
    `There may be ${relation.maxInstances} instances of "${relation.key}", and there are ${live.length}. Message one of them with subagent_message instead: ${references}.`,
  )
}
