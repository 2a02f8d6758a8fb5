import { facadeFiles, facadeValues } from '../thread/values.ts'
import type {
  StandingGrant,
  ThreadEffects,
  ThreadEnv,
  ThreadFiles,
  ThreadGrants,
  ThreadValues,
} from '../contract/runtime-api.ts'
import {
  type ApiContext,
  bufferOf,
  checkLabel,
  editThread,
  editWith,
  isOver,
  load,
  type LoadedThread,
} from './api-context.ts'
import { envSet, isSecret } from '../thread/env.ts'
import { inheritedEnv } from '../thread/changes.ts'
import { RuntimeError } from '../contract/error.ts'
import type { EffectScheduled, GrantMade } from '../contract/event.ts'
import { facadeEffects, scheduledEffects } from '../thread/effects.ts'
import { type KernelState, openForPeople, registryOf, waitingCount } from '../contract/state.ts'

/** Creates the file functions of the API; they follow the same rules as for tools. */
export function filesApi(context: ApiContext): ThreadFiles {
  const open = async (threadId: string) =>
    facadeFiles(bufferOf(context, (await load(context, threadId)).state))
  return {
    list: async (threadId, prefix) => (await open(threadId)).listFiles(prefix),
    stat: async (threadId, path) => (await open(threadId)).statFile(path),
    async read(threadId, path) {
      const files = await open(threadId)
      const [normal = path] = files.existing([path])
      const stat = files.statFile(normal)!
      return { stat, bytes: await files.readFile(normal) }
    },
    write: (threadId, path, bytes, { mediaType } = {}) =>
      editWith(context, { threadId, point: 'write_file' }, (buffer) =>
        facadeFiles(buffer).writeFile(path, bytes, { mediaType: mediaType || undefined }),
      ),
    remove: (threadId, path) =>
      editWith(context, { threadId, point: 'remove_file' }, (buffer) => {
        const files = facadeFiles(buffer)
        if (!files.statFile(path)) return false
        files.removeFile(path)
        return true
      }),
    move: (threadId, from, to) =>
      editWith(context, { threadId, point: 'move_file' }, (buffer) => {
        const files = facadeFiles(buffer)
        files.moveFile(from, to)
        return files.statFile(to)!
      }),
  }
}

/** Creates the value functions of the API; they follow the same rules as for tools. */
export function valuesApi(context: ApiContext): ThreadValues {
  const open = async (threadId: string) =>
    facadeValues(bufferOf(context, (await load(context, threadId)).state))
  return {
    list: async (threadId, prefix) => (await open(threadId)).listValues(prefix),
    get: async (threadId, key) => (await open(threadId)).getValue(key),
    set: (threadId, key, value) =>
      editWith(context, { threadId, point: 'set_value' }, (buffer) => {
        // Removing a value that does not exist writes no event.
        if (value === null && !buffer.kernel.values.has(key)) return
        facadeValues(buffer).setValue(key, value)
      }),
  }
}

/**
 * Creates the variable functions of the API. A new value is written to live descendants in the same commit.
 */
export function envApi(context: ApiContext): ThreadEnv {
  const parts = { ...context, load: async (id: string) => (await context.folds.load(id))?.state }
  return {
    async list(threadId) {
      const { state } = await load(context, threadId)
      return [...state.env]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, { type, value }]) => ({
          name,
          type,
          value: type === 'text' ? value : undefined,
        }))
    },
    async set(threadId, name, value, { type } = {}) {
      await editThread(context, { threadId, point: 'set_env' }, async (thread) => {
        const { state } = thread
        if (value === null && !state.env.has(name)) return { result: undefined }
        const valueType = isSecret(context, state, name) ? 'secret' : (type ?? 'text')
        const isScoped = state.env.get(name)?.isScoped ?? false
        const setting = { name, value, valueType }
        const others = isScoped ? [] : await inheritedEnv(parts, thread.head, setting)
        const event = { ...setting, threadId, vault: context.vault, at: context.at(), isScoped }
        return { result: undefined, change: { append: [envSet(event)] }, others }
      })
    },
  }
}

/** Creates the functions for scheduled effects; they follow the same rules as for tools. */
export function effectsApi(context: ApiContext): ThreadEffects {
  return {
    list: async (threadId) => scheduledEffects((await load(context, threadId)).state.effects),
    async schedule(threadId, name, args, when) {
      const target = { threadId, point: 'schedule_effect' }
      const { result } = await editThread(context, target, ({ state }) => {
        const buffer = bufferOf(context, state)
        const id = facadeEffects(buffer).scheduleEffect(name, args, when)
        const { runAt } = buffer.events.at(-1) as EffectScheduled // the event that was written just above
        return { result: id, change: { append: buffer.events, wake: { by: Date.parse(runAt) } } }
      })
      return result
    },
    async runNow(threadId, effectId) {
      await editThread(context, { threadId, point: 'run_effect_now' }, ({ state }) => {
        const effect = state.effects.get(effectId)
        if (!effect)
          throw new RuntimeError(`Thread ${threadId} has no scheduled effect ${effectId}.`, {
            code: 'EFFECT_NOT_FOUND',
            hint: 'The effect may have run already, or was removed.',
          })
        if (effect.runningEpoch !== undefined) return { result: undefined }
        if (effect.interruptId !== undefined)
          throw new RuntimeError(
            `The effect ${effectId} of thread ${threadId} waits for a person.`,
            {
              code: 'EFFECT_INVALID',
              hint: 'Answer its question first; `inbox.list` shows it.',
            },
          )
        const at = context.at()
        const append = [{ ...effect.scheduled, at, runAt: at }]
        return { result: undefined, change: { append, wake: { by: context.clock.now() } } }
      })
    },
    async remove(threadId, effectId) {
      const target = { threadId, point: 'remove_effect' }
      const { result } = await editThread(context, target, ({ state }) => {
        const buffer = bufferOf(context, state)
        const isThere = facadeEffects(buffer).removeScheduledEffect(effectId)
        const isAsking = openForPeople(state).some((open) => open.effectId === effectId)
        const waiting = waitingCount(state, context.clock.now()) - (isAsking ? 1 : 0)
        const change = isThere ? { append: buffer.events, head: { waiting } } : undefined
        return { result: isThere, change }
      })
      return result
    },
  }
}

const PAGE = 1000

/** How many grants of a thread may be in force at the same time. */
const MAX_GRANTS = 50

/** Creates the functions for the standing grants of threads. */
export function grantsApi(context: ApiContext): ThreadGrants {
  return {
    async list(threadId) {
      const { state } = await load(context, threadId)
      return [...state.grants.values()].map((one) => grantInfo(one, context)).toReversed()
    },
    async all({ limit = PAGE, ...query } = {}) {
      const now = context.clock.now()
      const grants: Awaited<ReturnType<ThreadGrants['all']>>[number][] = []
      for (let offset = 0; ; offset += PAGE) {
        const page = { ...query, grantedAfter: now, sort: 'oldest', limit: PAGE, offset } as const
        const heads = await context.store.list(page)
        for (const { id: threadId, agent, title, firstWords } of heads) {
          const thread = await context.folds.load(threadId)
          if (!thread || isOver(thread)) continue
          for (const one of thread.state.grants.values()) {
            const info = grantInfo(one, context)
            if (info.status === 'active')
              grants.push({ ...info, threadId, agent, title: title ?? firstWords })
          }
        }
        if (heads.length < PAGE) break
      }
      const end = ({ expiresAt }: StandingGrant): number => Date.parse(expiresAt)
      return grants.toSorted((a, b) => end(a) - end(b)).slice(0, limit)
    },
    async make(threadId, { tool, forMs, by, reason, risk }) {
      checkLabel(tool, 'The name of the tool')
      const target = { threadId, point: 'make_grant' }
      const { result } = await editThread(context, target, async (thread) => {
        const wanted = risk ?? declaredRisk(context, thread.state, tool)
        const { made, ...rest } = await newGrant(context, thread, {
          tool,
          forMs,
          by,
          reason,
          risk: wanted,
        })
        const info = grantInfo({ made, revoked: undefined }, context)
        return { result: info, change: { append: [made] }, ...rest }
      })
      return result
    },
    async revoke(threadId, grantId, { by }) {
      await editThread(context, { threadId, point: 'revoke_grant' }, async ({ head, state }) => {
        const grant = state.grants.get(grantId)
        if (!grant)
          throw new RuntimeError(`Thread ${threadId} has no grant ${grantId}.`, {
            code: 'GRANT_NOT_FOUND',
            hint: 'A grant belongs to one thread; `grants.list` lists those of a thread.',
          })
        if (grant.revoked) return { result: undefined }
        const change = { head, agent: state.agent, by, grant: grant.made, done: 'revoked' } as const
        const writes = await context.governors.recordGrant(change)
        const append = [{ type: 'grant_revoked', at: context.at(), grantId, by } as const]
        return { result: undefined, change: { append }, ...writes }
      })
    },
  }
}

/**
 * Signs a grant and returns the event that records it, with the lines of the audit log. The state is that of the log
 * on which the commit builds.
 */
export async function newGrant(
  context: ApiContext,
  { head, state }: LoadedThread,
  { tool, forMs, by, reason, risk }: Parameters<ThreadGrants['make']>[1] & Pick<GrantMade, 'risk'>,
): Promise<
  { readonly made: GrantMade } & Awaited<ReturnType<ApiContext['governors']['recordGrant']>>
> {
  const refuse = (message: string, hint: string): RuntimeError =>
    new RuntimeError(message, { code: 'ANSWER_INVALID', hint })
  if (by === state.agent)
    throw refuse(`"${by}" may not allow its own calls.`, 'Let a person make the grant.')
  const expiresAt = context.clock.now() + forMs
  const active = [...state.grants.values()].filter(
    (one) => grantInfo(one, context).status === 'active',
  )
  if (active.length >= MAX_GRANTS)
    throw refuse(`The thread has ${MAX_GRANTS} grants already.`, 'Revoke one that nobody needs.')
  const grantId = context.ids()
  const { agent } = state
  const grant = await context.governors.signGrant({
    threadId: head.id,
    tool,
    risk,
    by,
    expiresAt,
    grantId,
  })
  const made: GrantMade = {
    type: 'grant_made',
    at: context.at(),
    grantId,
    tool,
    risk,
    by,
    expiresAt: new Date(expiresAt).toISOString(),
    ...(reason !== undefined && { reason }),
    grant,
  }
  const change = { head, agent, by, grant: made, done: 'made' } as const
  return { made, ...(await context.governors.recordGrant(change)) }
}

/** Returns the risk that a tool of the thread's agent declares. Throws if a grant of it would have no meaning. */
function declaredRisk(context: ApiContext, state: KernelState, tool: string): GrantMade['risk'] {
  const { a, b } = registryOf(context.registry, state).agent(state.agent)
  const found = [a, b].flatMap((side) => side?.prompt.tools ?? []).find(({ name }) => name === tool)
  const risk = found?.kind === 'tool' ? found.tool.governance.risk : undefined
  if (risk === 'write_low_risk' || risk === 'write_high_risk') return risk
  throw new RuntimeError(
    found
      ? `"${tool}" needs no approval, so there is nothing to grant.`
      : `The agent "${state.agent}" has no tool "${tool}".`,
    {
      code: 'ANSWER_INVALID',
      hint: 'Name a tool of the agent that the thread has now and that writes.',
    },
  )
}

function grantInfo(
  {
    made,
    revoked,
  }: Pick<NonNullable<ReturnType<KernelState['grants']['get']>>, 'made' | 'revoked'>,
  { clock }: ApiContext,
): StandingGrant {
  const { type: _, grant: __, ...facts } = made
  const isOver = Date.parse(made.expiresAt) <= clock.now()
  return {
    ...facts,
    status: revoked ? 'revoked' : isOver ? 'expired' : 'active',
    revoked: revoked && { by: revoked.by, at: revoked.at },
  }
}
