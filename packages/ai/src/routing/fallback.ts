import { type Clock, systemClock } from '@skein/base'
import { ErrorCode, type Modality, UPPError } from '../contract/error.ts'
import type { AnyRequest } from '../contract/middleware.ts'
import type { ModelReference } from '../contract/provider.ts'
import { toUPPError } from '../contract/error.ts'
import type { Warning } from '../contract/turn.ts'
import { combinedModel } from './combined.ts'
import type { Residency } from './residency.ts'
import {
  type Member,
  type MemberAnswer,
  type MemberInput,
  type MemberPolicy,
  type MemberTask,
  toMembers,
} from './member.ts'

/** The settings of `fallback`. */
export interface FallbackOptions {
  /** Error codes after which the next model is tried. Default: all but CANCELLED and INVALID_REQUEST. */
  readonly on?: readonly Exclude<ErrorCode, 'CANCELLED'>[]
  /**
   * How long a model is tried only after all others, once its vendor has failed; longer if the vendor asks
   * for a longer wait. Default 60 s.
   */
  readonly cooldownMs?: number
  /**
   * Allows embeddings of different models in one index. Their vectors cannot be compared, so without it an
   * embedding by a second model is refused.
   */
  readonly mixVectors?: boolean
  readonly clock?: Clock
  /**
   * Where requests may be processed. A model outside, or whose region is not known, is never tried; if none is left,
   * the call fails with `INVALID_REQUEST` and the `vendorCode` `RESIDENCY`, and nothing is sent.
   */
  readonly residency?: Residency
}

/**
 * Combines models in order of preference: if one fails before it has produced content, the next is
 * tried. The result can be used wherever a model can, for embeddings and images if all members support
 * them. `message_start` names the model that answered, `turn.warnings` those that failed. A model
 * whose vendor failed is tried last until its cooldown is over. A model that cannot take the request (a
 * picture, tools) is not asked; one that could not be shown a part of the history is asked after those that can
 * take all of it.
 *
 *     llm({ model: fallback([anthropic('claude-sonnet-4-5'), openai('gpt-5')]) })
 *
 * A key belongs to one vendor, so set it on the member: `{ model, config: { apiKey } }`. Embeddings of
 * two models cannot be compared: only the same model of several vendors is accepted, unless `mixVectors` is set.
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
    mixesVectors: options.mixVectors,
    residency: options.residency,
  })
}

const defaultCodes = Object.values(ErrorCode).filter(
  (code) => code !== 'CANCELLED' && code !== 'INVALID_REQUEST',
)

/** Failures caused by the request, not by the vendor: they start no cooldown. */
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
  /** Cooldowns by the index of the member. */
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
    const { ready, resting } = this.#order(task)
    const warnings: Warning[] =
      ready.length > 0
        ? resting.map(({ member, rest }) =>
            fallbackWarning(`${member.label} rests after ${rest.code}.`),
          )
        : []
    const unable = (answering: Member): Warning[] =>
      (task.unable ?? [])
        .filter(({ member }) => member.index < answering.index)
        .map(({ member, error }) =>
          fallbackWarning(`${member.label} was not asked: ${error.message}`),
        )
    const errors: UPPError[] = []
    // Models in cooldown are tried last rather than not at all.
    for (const member of [...ready, ...resting.map((one) => one.member)]) {
      try {
        const value = await task.attempt(member)
        this.#rests.delete(member.index)
        return { member, value, warnings: [...unable(member), ...warnings] }
      } catch (thrown) {
        const error = toUPPError(thrown, {
          provider: member.reference.provider.name,
          modality: task.modality,
        })
        if (!this.#goesOn(error, task)) throw error
        this.#rest(member, error)
        errors.push(error)
        warnings.push(fallbackWarning(`${member.label} failed with ${error.code}.`))
      }
    }
    throw allFailed(errors, this.#count, task)
  }

  failedLate(member: Member, error: unknown): void {
    const { provider } = member.reference
    this.#rest(member, toUPPError(error, { provider: provider.name, modality: 'llm' }))
  }

  #order<M extends Member>({
    members,
    takesAll = () => true,
  }: MemberTask<M, unknown>): {
    ready: M[]
    resting: { member: M; rest: Rest }[]
  } {
    const now = this.#clock.now()
    const ready: M[] = []
    const resting: { member: M; rest: Rest }[] = []
    for (const member of members) {
      const rest = this.#rests.get(member.index)
      if (rest && rest.until > now) resting.push({ member, rest })
      else ready.push(member)
    }
    // Sorting keeps the order of preference among the members that can take all of the request, and the others.
    const loss = (member: M): number => Number(!takesAll(member))
    ready.sort((a, b) => loss(a) - loss(b))
    resting.sort((a, b) => loss(a.member) - loss(b.member) || a.rest.until - b.rest.until)
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

function fallbackWarning(message: string): Warning {
  return { code: 'model_fallback', message }
}

function allFailed(
  errors: readonly UPPError[],
  count: number,
  { modality }: { readonly modality: Modality },
): UPPError {
  const last = errors.at(-1)!
  if (errors.length === 1) return last
  const failures = errors.map(({ provider, code }) => `${provider} ${code}`).join(', ')
  const delays = errors.flatMap(({ retryAfterMs }) => retryAfterMs ?? [])
  return new UPPError(`All ${count} models of the fallback failed: ${failures}. ${last.message}`, {
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
