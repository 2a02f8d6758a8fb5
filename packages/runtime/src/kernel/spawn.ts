import type { JsonObject } from '@skein/base'
import { agentRegistrations } from '../services/agent-registrations.ts'
import type { Relation, ResolvedAgent } from '../definitions/resolved.ts'
import { EVENT_VERSION, type RuntimeEvent } from '../event.ts'
import type { EnvReader } from '../services/env-reader.ts'
import { scopedNames } from '../services/scoped-names.ts'
import { envContext } from '../services/vault.ts'
import type { Blob, ThreadChange } from '../store/store.ts'
import type { FileStat } from '../thread-state.ts'
import { copyFiles, type CopiedFiles } from './copy-files.ts'
import type { DrainContext } from './drain-context.ts'
import { queuedText } from './queued-text.ts'

/** What the creation of a child, or a message to one, changes: part of the commit of the call. */
export interface SpawnPlan {
  readonly reference: string
  /** Events of the parent. */
  readonly events: readonly RuntimeEvent[]
  readonly others: readonly ThreadChange[]
  readonly blobs?: readonly Blob[]
  /** Set when the call waits for the child. */
  readonly interruptId?: string
}

/** A child to be created. */
export interface NewChild {
  readonly relation: Relation
  readonly env: EnvReader
  /** Label of the instance. */
  readonly name: string | undefined
  /** Undefined: the arguments as JSON. */
  readonly message: string | undefined
  readonly attachments: readonly FileStat[]
  readonly arguments: JsonObject
  readonly toolCallId?: string
  /** Whether a call waits for it. */
  readonly isAwaited: boolean
  readonly isImmediate?: boolean
  readonly spawnGroupId?: string
  /** Values that came after the call, by name. */
  readonly provided?: ReadonlyMap<
    string,
    { readonly type: 'text' | 'secret'; readonly value: string }
  >
}

/** Plans a child thread: its log begins in the same commit as the parent's record of it. */
export function planSpawn(context: DrainContext, given: NewChild): SpawnPlan {
  const { environment, head } = context
  const { relation } = given
  const reference = environment.ids()
  const interruptId = given.isAwaited ? environment.ids() : undefined
  const agent = environment.registry.agent(relation.agent)
  const files = copyFiles(context, given.attachments, reference)
  const child = { ...given, arguments: localArguments(given, files) }
  const now = environment.clock.now()
  const others: ThreadChange = {
    id: reference,
    create: {
      tenant: head.tenant,
      owner: head.owner,
      agent: agent.name,
      parentId: head.id,
      rootId: head.rootId,
      title: child.name ?? null,
      tags: child.name === undefined ? [] : [`name:${child.name.slice(0, 120)}`],
      clientId: null,
      createdAt: now,
    },
    append: [
      ...createdEvents(context, { child, agent, reference }),
      ...envEvents(context, child, reference),
      ...files.events,
      firstMessage(context, child, { files, interruptId }),
    ],
    wake: { by: now },
  }
  return {
    reference,
    events: [registered(context, { child, agent, reference })],
    others: [others],
    ...(interruptId !== undefined && { interruptId }),
  }
}

/** The paths of handed-over files are the child's own, wherever they are named (§7.12). */
function localArguments(
  { relation, arguments: args }: NewChild,
  { paths }: CopiedFiles,
): JsonObject {
  const from = relation.config.initAttachmentsProperty
  if (from === undefined || paths.length === 0 || args[from] === undefined) return args
  return { ...args, [from]: Array.isArray(args[from]) ? [...paths] : paths[0]! }
}

interface Birth {
  readonly child: NewChild
  readonly agent: ResolvedAgent
  readonly reference: string
}

function createdEvents(context: DrainContext, { child, agent, reference }: Birth): RuntimeEvent[] {
  const { relation, name } = child
  const at = context.at()
  return [
    {
      type: 'thread_created',
      at,
      version: EVENT_VERSION,
      threadId: reference,
      agent: agent.name,
      depth: context.state.depth + 1,
      parentThreadId: context.head.id,
      arguments: child.arguments,
      ...(name !== undefined && { title: name }),
      parent: {
        threadId: context.head.id,
        relation: relation.key,
        isBlocking: child.isAwaited,
        isResumable: relation.isResumable,
        communication: relation.communication,
        receives: relation.receives,
      },
    },
    ...agentRegistrations(agent, at),
  ]
}

/** The child inherits what the thread was given, but for what is scoped to another child. */
function envEvents(context: DrainContext, child: NewChild, reference: string): RuntimeEvent[] {
  const { relation, env, provided = new Map() } = child
  const names = new Map<string, boolean>()
  const scoped = scopedNames(context.agent)
  for (const [name, { isScoped }] of context.state.env)
    if (!isScoped && !scoped.has(name)) names.set(name, false)
  for (const name of relation.scopedEnv) names.set(name, true)
  for (const { name } of relation.requiredVariables) names.set(name, true)
  return [...names].flatMap(([name, isScoped]) => {
    const given = provided.get(name)
    const value = given?.value ?? env.get(name)
    if (value === undefined) return []
    const isSecret = given
      ? given.type === 'secret'
      : env.isSecret(name) || isDeclaredSecret(relation, name)
    const sealed = isSecret
      ? context.environment.vault.seal(value, envContext(reference, name))
      : value
    return [
      {
        type: 'env_set' as const,
        at: context.at(),
        name,
        valueType: isSecret ? ('secret' as const) : ('text' as const),
        value: sealed,
        ...(isScoped && { isScoped }),
      },
    ]
  })
}

function isDeclaredSecret({ requiredVariables }: Relation, name: string): boolean {
  return requiredVariables.some((variable) => variable.name === name && variable.type === 'secret')
}

function firstMessage(
  context: DrainContext,
  { message, relation, arguments: args }: NewChild,
  { files, interruptId }: { readonly files: CopiedFiles; readonly interruptId: string | undefined },
): RuntimeEvent {
  const text = message ?? (Object.keys(args).length > 0 ? JSON.stringify(args) : 'Begin.')
  return queued(context, { text, files, relation, interruptId })
}

/** A message from the parent to the side that listens to it. */
export function queued(
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
      ...(interruptId !== undefined && { parentInterruptId: interruptId }),
    },
  )
}

function registered(context: DrainContext, { child, agent, reference }: Birth): RuntimeEvent {
  const { relation, name, toolCallId, isImmediate, spawnGroupId } = child
  const { title, description } = agent.definition
  const turnId = context.state.session?.turn?.id
  return {
    type: 'subagent_created',
    at: context.at(),
    reference,
    name: agent.name,
    relation: relation.key,
    description: description ?? relation.description,
    isBlocking: relation.isBlocking,
    isResumable: relation.isResumable,
    parentCommunication: relation.communication,
    ...(title !== undefined && { title }),
    ...(name !== undefined && { threadName: name }),
    ...(turnId !== undefined && { turnId }),
    ...(toolCallId !== undefined && { toolCallId }),
    ...(isImmediate && { isImmediate }),
    ...(spawnGroupId !== undefined && { spawnGroupId }),
  }
}
