import { RuntimeError } from '../error.ts'
import {
  agentRegistrations,
  EVENT_VERSION,
  type MessageQueued,
  type RuntimeEvent,
} from '../event.ts'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import { startsSomething } from '../next.ts'
import type { CreateThread } from '../runtime-api.ts'
import { createEnvReader, envSet } from '../thread/env.ts'
import { checkedValue, checkValueKey } from '../thread/values.ts'
import { isStoreError, type NewThread, type ThreadHead } from '../store/store.ts'
import { type ApiContext, headOf, toRuntimeError } from './api-context.ts'
import { checkedMetadata, checkLabel, checkTags } from './check-input.ts'
import { queuedMessage } from './queued-message.ts'

/** Creates a thread with everything it begins with, in one commit. */
export async function createThread(context: ApiContext, thread: CreateThread): Promise<ThreadHead> {
  const agent = context.registry.agent(thread.agent)
  checkThread(thread)
  const id = context.ids()
  const message = thread.message === undefined ? undefined : firstMessage(context, thread.message)
  const append = firstEvents(context, { id, thread, agent, message })
  const create = newThread(context, id, thread)
  const wakes = message !== undefined || startsSomething(agent)
  const wake = { by: context.clock.now() }
  try {
    const change = { id, create, append, ...(wakes && { wake }) }
    await context.commit({ point: 'create_thread', threads: [change] })
  } catch (error) {
    if (isStoreError(error, 'CLIENT_ID_TAKEN')) return sameThread(context, create, error)
    throw toRuntimeError(error)
  }
  return headOf(context, id)
}

function checkThread({ tenant, owner, title, tags = [], clientId }: CreateThread): void {
  const labels = { tenant, owner, title, 'client id': clientId }
  for (const [name, text] of Object.entries(labels))
    if (text !== undefined) checkLabel(text, `The ${name} of the thread`)
  checkTags(tags)
}

/** A new thread has no files yet. */
function firstMessage(
  context: ApiContext,
  sent: NonNullable<CreateThread['message']>,
): MessageQueued {
  const message = queuedMessage(context, sent)
  const path = message.attachments?.[0]
  if (path === undefined) return message
  throw new RuntimeError(`The first message names the file ${path}, which cannot exist yet.`, {
    code: 'FILE_NOT_FOUND',
    hint: 'Create the thread, write the file, then send the message.',
  })
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
  const set = (name: string, value: string, valueType: 'text' | 'secret') =>
    envSet({ name, value, valueType, threadId: id, vault, at })
  const { title, metadata, budget, env = {}, secrets = {}, values = {} } = thread
  const kernel = { env: new Map() }
  const reader = createEnvReader({ kernel, agent, side: 'a', instanceEnv: {}, vault, threadId: id })
  // What the agent calls a secret is one, however it was given.
  const typeOf = (name: string) => (reader.isSecret(name) ? 'secret' : 'text')
  return [
    {
      type: 'thread_created',
      at,
      threadId: id,
      agent: agent.name,
      version: EVENT_VERSION,
      depth: 0,
      ...(title !== undefined && { title }),
      ...(metadata && { metadata: checkedMetadata(metadata, 'the thread') }),
      ...(budget && { budget }),
    },
    ...agentRegistrations(agent, at),
    ...Object.entries(env).map(([name, value]) => set(name, value, typeOf(name))),
    ...Object.entries(secrets).map(([name, value]) => set(name, value, 'secret')),
    ...Object.entries(values).map(([key, value]) => {
      checkValueKey(key)
      return { type: 'value_set', at, key, value: checkedValue(key, value) } as const
    }),
    ...(message ? [message] : []),
  ]
}

function newThread(context: ApiContext, id: string, thread: CreateThread): NewThread {
  return {
    tenant: thread.tenant ?? 'default',
    owner: thread.owner ?? null,
    agent: thread.agent,
    parentId: null,
    rootId: id,
    title: thread.title ?? null,
    tags: thread.tags ?? [],
    clientId: thread.clientId ?? null,
    createdAt: context.clock.now(),
  }
}

/** Creating twice with one client id is one thread, if it is the same kind of thread. */
async function sameThread(
  { store }: ApiContext,
  { tenant, agent, owner, clientId }: NewThread,
  error: unknown,
): Promise<ThreadHead> {
  const known = clientId === null ? undefined : await store.headByClientId(tenant, clientId)
  if (known && known.agent === agent && known.owner === owner) return known
  throw toRuntimeError(error)
}
