import type { GatewayAnswer } from '@skein/ai/gateway'
import type { Call } from '../../operations/operation.ts'
import { agentEvents } from './agent-events.ts'
import { ApprovalRequiredError, toRefusal } from './compat-error.ts'
import { compatId, compatToken } from './compat-id.ts'
import { askThread, EPHEMERAL } from './compat-thread.ts'
import type { Runtime } from '../../contract/runtime-api.ts'

const DAY_MS = 24 * 3_600_000

/** Serves an agent as a model: each request is answered by a thread of the agent. */
export function agentAnswer(
  call: Pick<Call, 'runtime' | 'principal' | 'services'>,
  agent: string,
): GatewayAnswer {
  const { runtime, principal, services } = call
  return async (request) => {
    try {
      await sweepEphemeral(runtime, principal.tenant, { now: services.clock.now(), ttlMs: DAY_MS })
      const { thread, after, queueId, isDurable } = await askThread({
        runtime,
        principal,
        agent,
        request,
      })
      const { signal, stream } = request
      // A thread that was created only for this answer stops when its client disconnects.
      const stop = (): void =>
        void runtime.threads
          .stop(thread.id, { by: principal.user ?? principal.tenant })
          .catch(services.report)
      if (!isDurable) signal.addEventListener('abort', stop, { once: true })
      return {
        events: agentEvents(runtime, thread, {
          after,
          queueId,
          isStream: stream,
          signal,
          prefix: services.prefix,
        }),
        droppedParams: Object.keys(request.params).filter((name) => !KNOWN.has(name)),
        id: compatToken(thread.id, queueId ?? String(after)),
        fields: isDurable
          ? { conversation: { id: compatId('conv', thread.id) }, store: true }
          : undefined,
        toServerError: (error) => {
          if (!(error instanceof ApprovalRequiredError)) return undefined
          const { code, message, statusCode = 409, fields } = error
          return { code, message, statusCode, fields }
        },
      }
    } catch (error) {
      throw toRefusal(error)
    }
  }
}

/** The parameters that agents support. */
const KNOWN: ReadonlySet<string> = new Set([
  'conversation',
  'previous_response_id',
  'store',
  'max_tokens', // Anthropic requires it
])

const INTERVAL_MS = 60_000
const PAGE = 100

/** The time of the last `sweepEphemeral` for each tenant, per runtime. */
const sweptAt = new WeakMap<Runtime, Map<string, number>>()

/**
 * Removes threads that were created for one answer and have been idle for a day. Until then their log can be
 * read, and they can continue with a result of the client's tools or a decision. Runs at most once a minute.
 */
async function sweepEphemeral(
  runtime: Runtime,
  tenant: string,
  { now, ttlMs }: { readonly now: number; readonly ttlMs: number },
): Promise<number> {
  const times = sweptAt.get(runtime) ?? new Map<string, number>()
  sweptAt.set(runtime, times)
  if (now - (times.get(tenant) ?? -Infinity) < INTERVAL_MS) return 0
  times.set(tenant, now)
  const threads = await runtime.threads.list({
    tenant,
    tag: EPHEMERAL,
    parentId: null,
    sort: 'oldest',
    limit: PAGE,
  })
  const old = threads.filter(
    ({ lifecycle, updatedAt }) => lifecycle !== 'running' && Date.parse(updatedAt) < now - ttlMs,
  )
  for (const { id } of old) await runtime.threads.remove(id)
  return old.length
}
