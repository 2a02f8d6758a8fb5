import { type Clock, systemClock } from '@skein/base'
import {
  ErrorCode,
  type ErrorOrigin,
  type Modality,
  toUPPError,
  UPPError,
} from '../contract/error.ts'
import type { AnyRequest } from '../contract/middleware.ts'
import type { ModelReference } from '../contract/provider.ts'
import type { Warning } from '../contract/turn.ts'
import { combinedModel } from './combined-model.ts'
import type { MemberAnswer, MemberPolicy, MemberTask } from './member-policy.ts'
import { type Member, type MemberInput, toMembers } from './member.ts'

export interface FallbackOptions {
  /** Failures after which the next model is asked. Default: all but CANCELLED and INVALID_REQUEST. */
  readonly on?: readonly Exclude<ErrorCode, 'CANCELLED'>[]
  /** How long a model rests after a failure of its vendor; longer if the vendor says so. Default 60 s. */
  readonly cooldownMs?: number
  readonly clock?: Clock
}

/**
 * Models that stand in for each other, in order of preference. Usable wherever a model is; for
 * embeddings and images when all of them have these. The next one is asked when one fails before it
 * has shown anything; who answered is in `message_start`, who did not in `turn.warnings`. A model
 * whose vendor failed rests for a while and is then asked last.
 *
 *     llm({ model: fallback([anthropic('claude-sonnet-4-5'), openai('gpt-5')]) })
 *
 * A key belongs to one vendor, so give it there: `{ model, config: { apiKey } }`. Embeddings of two
 * models cannot be compared: combine only the same model of several vendors.
 */
export function fallback(
  models: readonly MemberInput[],
  options: FallbackOptions = {},
): ModelReference {
  const members = toMembers(models, 'fallback')
  return combinedModel({
    name: 'fallback',
    members,
    policy: new FallbackPolicy(members, options),
    capabilities: 'every',
  })
}

const defaultCodes = Object.values(ErrorCode).filter(
  (code) => code !== 'CANCELLED' && code !== 'INVALID_REQUEST',
)

/** Failures that tell of the request, not of the vendor's health: the next request may well succeed. */
const aboutRequest = new Set<ErrorCode>([
  ErrorCode.InvalidRequest,
  ErrorCode.ContextLengthExceeded,
  ErrorCode.ContentFiltered,
  ErrorCode.Cancelled,
])

interface Rest {
  readonly until: number
  readonly code: ErrorCode
}

class FallbackPolicy implements MemberPolicy {
  readonly #codes: ReadonlySet<ErrorCode>
  readonly #cooldownMs: number
  readonly #clock: Clock
  /** By the index of the member. */
  readonly #rests = new Map<number, Rest>()
  readonly #count: number

  constructor(members: readonly Member[], options: FallbackOptions) {
    const { on = defaultCodes, cooldownMs = 60_000, clock = systemClock } = options
    this.#codes = new Set<ErrorCode>(on)
    this.#cooldownMs = cooldownMs
    this.#clock = clock
    this.#count = members.length
  }

  async run<M extends Member, T>(task: MemberTask<M, T>): Promise<MemberAnswer<M, T>> {
    const { ready, resting } = this.#order(task.members)
    const warnings: Warning[] =
      ready.length > 0 ? resting.map(({ member, rest }) => restWarning(member, rest)) : []
    const errors: UPPError[] = []
    // Rather a model that failed a moment ago than no answer at all.
    for (const member of [...ready, ...resting.map((one) => one.member)]) {
      try {
        const value = await task.attempt(member)
        this.#rests.delete(member.index)
        return { member, value, warnings }
      } catch (thrown) {
        const error = toUPPError(thrown, originOf(member, task))
        if (!this.#goesOn(error, task)) throw error
        this.#rest(member, error)
        errors.push(error)
        warnings.push(failureWarning(member, error))
      }
    }
    throw allFailed(errors, this.#count, task)
  }

  failedLate(member: Member, error: unknown): void {
    const { provider } = member.reference
    this.#rest(member, toUPPError(error, { provider: provider.name, modality: 'llm' }))
  }

  #order<M extends Member>(
    members: readonly M[],
  ): { ready: M[]; resting: { member: M; rest: Rest }[] } {
    const now = this.#clock.now()
    const ready: M[] = []
    const resting: { member: M; rest: Rest }[] = []
    for (const member of members) {
      const rest = this.#rests.get(member.index)
      if (rest && rest.until > now) resting.push({ member, rest })
      else ready.push(member)
    }
    resting.sort((a, b) => a.rest.until - b.rest.until)
    return { ready, resting }
  }

  #goesOn({ code }: UPPError, { request }: { readonly request: AnyRequest }): boolean {
    return code !== ErrorCode.Cancelled && !request.signal.aborted && this.#codes.has(code)
  }

  #rest({ index }: Member, { code, retryAfterMs = 0 }: UPPError): void {
    if (aboutRequest.has(code)) return
    const ms = Math.max(this.#cooldownMs, retryAfterMs)
    if (ms > 0) this.#rests.set(index, { until: this.#clock.now() + ms, code })
  }
}

function originOf(member: Member, { modality }: { readonly modality: Modality }): ErrorOrigin {
  return { provider: member.reference.provider.name, modality }
}

function failureWarning({ label }: Member, { code }: UPPError): Warning {
  return { code: 'model_fallback', message: `${label} failed with ${code}.` }
}

function restWarning({ label }: Member, { code }: Rest): Warning {
  return { code: 'model_fallback', message: `${label} rests after ${code}.` }
}

function allFailed(
  errors: readonly UPPError[],
  count: number,
  { modality }: { readonly modality: Modality },
): UPPError {
  const last = errors.at(-1)!
  if (errors.length === 1) return last
  const told = errors.map(({ provider, code }) => `${provider} ${code}`).join(', ')
  const delays = errors.flatMap(({ retryAfterMs }) => retryAfterMs ?? [])
  return new UPPError(`All ${count} models of the fallback failed: ${told}. ${last.message}`, {
    code: last.code,
    provider: last.provider,
    modality,
    statusCode: last.statusCode,
    vendorCode: last.vendorCode,
    vendorType: last.vendorType,
    requestId: last.requestId,
    retryAfterMs: delays.length > 0 ? Math.min(...delays) : undefined,
    cause: new AggregateError(errors, 'The failure of each model, in order.'),
    hint: 'See the errors of the cause for each model.',
  })
}
