import type { ResolvedAgent } from '../definitions/resolved.ts'
import { RuntimeError } from '../contract/error.ts'
import {
  agentRegistrations,
  EVENT_VERSION,
  type MessageQueued,
  type RuntimeEvent,
} from '../contract/event.ts'
import { type EnvEntry, type KernelState, startsSomething } from '../contract/state.ts'
import type { CreateThread } from '../contract/runtime-api.ts'
import { noPrice, unpricedFor } from '../definitions/load/prices.ts'
import { createEnvReader, envSet } from '../thread/env.ts'
import { checkedValue, checkValueKey } from '../thread/values.ts'
import { isStoreError } from '../store/store.ts'
import {
  type ApiContext,
  checkedMetadata,
  checkLabel,
  checkTags,
  redacted,
  toRuntimeError,
} from './api-context.ts'
import { queuedMessage } from './messages-api.ts'

/** Creates a thread with its variables, values and first message, in one commit. Returns its id. */
export async function createThread(context: ApiContext, thread: CreateThread): Promise<string> {
  const agent = context.registry.agent(thread.agent)
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
    agent: thread.agent,
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
    // Creating a thread again with the same client id returns the existing thread, if the agent is the same.
    const isTaken = isStoreError(error, 'CLIENT_ID_TAKEN') && clientId !== null
    const known = isTaken ? await store.headByClientId(tenant, clientId, owner) : undefined
    if (known && known.agent === thread.agent) return known.id
    throw toRuntimeError(error)
  }
  return id
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
