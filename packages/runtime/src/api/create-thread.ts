import type { ApiContext } from './api-context.ts'
import { toRuntimeError } from './edit-thread.ts'
import { checkLabel, checkTags, checkedMetadata } from './labels.ts'
import { queuedMessage } from './send-message.ts'
import { redacted } from './redacted-changes.ts'
import { RuntimeError } from '../contract/error.ts'
import { EVENT_VERSION, agentRegistrations, type MessageQueued, type RuntimeEvent } from '../contract/event.ts'
import type { CreateThread } from '../contract/new-thread.ts'
import { noPrice, unpricedFor } from '../definitions/load/check-budgets.ts'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import { startsSomething, type EnvEntry, type KernelState } from '../state/kernel-state.ts'
import { isStoreError } from '../store/store-error.ts'
import { createEnvReader, envSet } from '../thread/env.ts'
import { checkValueKey, checkedValue } from '../thread/values.ts'

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
    const sameThread = isTaken ? await store.headByClientId(tenant, clientId, owner) : undefined
    if (sameThread && sameThread.agent === agent.name) return sameThread.id
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
  const variable = (name: string, value: string, isSecret: boolean): RuntimeEvent =>
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
    ...Object.entries(env).map(([name, value]) => variable(name, value, reader.isSecret(name))),
    ...Object.entries(secrets).map(([name, value]) => variable(name, value, true)),
    ...Object.entries(values).map(([key, value]) => {
      checkValueKey(key)
      return { type: 'value_set', at, key, value: checkedValue(key, value) } as const
    }),
    ...(message ? [message] : []),
  ]
}
