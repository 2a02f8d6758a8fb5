import type { Random } from '@skein/base'
import type { AnyRequest } from '../contract/middleware.ts'
import type { ModelReference } from '../contract/provider.ts'
import { type ErrorOrigin, invalidRequest } from '../contract/error.ts'
import { combinedModel } from './combined.ts'
import type { Residency } from './residency.ts'
import {
  type Member,
  type MemberAnswer,
  type MemberOptions,
  type MemberPolicy,
  type MemberTask,
  toMembers,
} from './member.ts'

/** One model of a route. */
export interface RouteMember extends MemberOptions {
  /** If set, only requests for which `when` returns true are sent to this model. */
  readonly when?: (request: AnyRequest) => boolean
  /** The relative share of requests with the strategy `weighted`. Default 1. */
  readonly weight?: number
}

/** The settings of `route`. */
export interface RouteOptions {
  /** How one of the suitable models is chosen. Default `first`. */
  readonly strategy?: 'first' | 'weighted' | 'round_robin'
  /** The random source of `weighted`: returns a number from 0 up to 1. */
  readonly random?: Random
  /** Allows embeddings of different models, e.g. if `when` keeps each index with one model. */
  readonly mixVectors?: boolean
  /**
   * Where requests may be processed. A model outside, or whose region is not known, is never tried; if none is left,
   * the call fails with `INVALID_REQUEST` and the `vendorCode` `RESIDENCY`, and nothing is sent.
   */
  readonly residency?: Residency
}

/**
 * Sends each call to one of the models whose `when` returns true: the first, one at random by weight, or
 * each in turn. A model without a capability that a request needs (tools, images, …) is skipped, so the
 * route can do what any of its models can. All inferences of one call go to the same model as long as it
 * is suitable.
 *
 *     route([
 *       { model: openai('gpt-5'), when: (request) => 'tools' in request && request.tools.length > 0 },
 *       { model: openai('gpt-5-mini') },
 *     ])
 */
export function route(
  models: readonly (ModelReference | RouteMember)[],
  options: RouteOptions = {},
): ModelReference {
  const rules = models.map((model): RouteMember => ('model' in model ? model : { model }))
  const members = toMembers(rules, 'route')
  return combinedModel({
    name: 'route',
    members,
    policy: new RoutePolicy(rules, options),
    mixesVectors: options.mixVectors,
    residency: options.residency,
  })
}

class RoutePolicy implements MemberPolicy {
  readonly #rules: readonly RouteMember[]
  readonly #strategy: NonNullable<RouteOptions['strategy']>
  readonly #random: Random
  /**
   * The index of the member chosen for each call. The key is the call's signal, which all inferences and
   * batches of one call share.
   */
  readonly #calls = new WeakMap<AbortSignal, number>()
  #turn = 0

  constructor(
    rules: readonly RouteMember[],
    { strategy = 'first', random = Math.random }: RouteOptions,
  ) {
    this.#rules = rules.map((rule) => {
      const { weight = 1, model } = rule
      if (Number.isFinite(weight) && weight >= 0) return rule
      throw invalidRequest(
        `The weight of ${model.provider.name}/${model.modelId} is ${weight}.`,
        { provider: 'route', modality: 'llm' },
        'Give a number, 0 or more.',
      )
    })
    this.#strategy = strategy
    this.#random = random
  }

  async run<M extends Member, T>(task: MemberTask<M, T>): Promise<MemberAnswer<M, T>> {
    const { signal } = task.request
    const fitting = this.#fitting(task)
    const current = fitting.find(({ index }) => index === this.#calls.get(signal))
    const member = current ?? this.#pick(fitting)
    this.#calls.set(signal, member.index)
    return { member, value: await task.attempt(member), warnings: [] }
  }

  #fitting<M extends Member>({
    members,
    request,
    modality,
    takesAll = () => true,
    unable = [],
  }: MemberTask<M, unknown>): readonly M[] {
    const origin: ErrorOrigin = { provider: 'route', modality }
    const wants = ({ index }: Member): boolean => this.#rules[index]?.when?.(request) !== false
    const fitting = members.filter(wants)
    if (fitting.length > 0) {
      const whole = fitting.filter(takesAll)
      return whole.length > 0 ? whole : fitting
    }
    const refusal = unable.find(({ member }) => wants(member))
    if (refusal) throw refusal.error
    const hint = 'Add a last model without `when` for what no other takes.'
    throw invalidRequest('No model of the route takes this request.', origin, hint)
  }

  #pick<M extends Member>(fitting: readonly M[]): M {
    const last = fitting.at(-1)! // `fitting` is never empty
    if (this.#strategy === 'first') return fitting[0]!
    if (this.#strategy === 'round_robin') return fitting[this.#turn++ % fitting.length]!
    const weights = fitting.map(({ index }) => this.#rules[index]?.weight ?? 1)
    let left = this.#random() * weights.reduce((sum, weight) => sum + weight, 0)
    return fitting.find((_, index) => (left -= weights[index]!) < 0) ?? last
  }
}
