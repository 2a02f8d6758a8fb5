import {
  type Clock,
  type IdSource,
  systemClock,
  uuidV4,
  decodeBase64Url,
  isPlainObject,
} from '@skein/base'
import {
  type Action,
  type ApprovalRequest,
  type Approvals,
  hashJson,
  type Policy,
  type Risk,
  type SpentStore,
  defineTaskClass,
  governor,
} from '@skein/governance'
import {
  type ApprovalIssuer,
  approvals,
  type ApprovalsOptions,
  approve,
  signGrant,
  toVerifyKey,
} from '@skein/governance/approvals'
import { RuntimeError } from '../contract/error.ts'
import type { GovernanceKeys } from './governance-keys.ts'
import { THREAD_MEMBER, SessionJournal, sessionRequestId } from './session-journal.ts'
import type { GrantMade } from '../contract/event.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { ThreadHead } from '../store/store.ts'
import type { GovernanceWrites, SessionGovernorsOptions } from './session-governors.ts'

interface ApprovalDeskOptions extends Pick<ApprovalsOptions, 'revoked' | 'skewMs'> {
  /** Id of this installation's governors, which judge calls; approval tokens are addressed to this id. */
  readonly id: string
  readonly keys: Pick<GovernanceKeys, 'approvals'>
  readonly clock?: Clock
  readonly ids?: IdSource
  /** Other issuers whose approvals are accepted, by name. */
  readonly issuers?: Readonly<Record<string, ApprovalIssuer>>
  /** Whether a person who is authenticated here may approve an action. Default: everybody may. */
  readonly may?: (action: Action, by: string) => boolean
  /** The longest time that a grant may be valid. Default 24 h. */
  readonly maxGrantMs?: number
}

/** Signs approvals for the people whom this installation authenticates, and checks signatures. */
export interface ApprovalDesk {
  /**
   * Signs an approval token for exactly this action. Throws if `by` is the acting agent or a person whom the
   * policy excludes.
   */
  signApproval(
    request: ApprovalRequest,
    options: { readonly by: string; readonly ttlMs?: number },
  ): Promise<string>
  /**
   * Signs a person's consent to all calls of a tool in a thread until a time (ms). The grant has an effect
   * only through `grantPolicy`.
   */
  signToolGrant(
    grant: Omit<ToolGrant, 'grant'> & {
      /** The id of the signed text; default a new one. */
      readonly grantId?: string
    },
  ): Promise<ToolGrant>
  /** Returns the object with which a governor checks approvals. */
  approvals(spent: SpentStore): Approvals
}

const RUNTIME = 'runtime'
/** A second issuer name for the same key, because grants may be valid longer than tokens. */
const RUNTIME_GRANTS = 'runtime-grants'
const HOUR_MS = 3_600_000

/** Creates a desk, which signs and checks approvals. It has no state: desks with the same keys are equivalent. */
export function createApprovalDesk(options: ApprovalDeskOptions): ApprovalDesk {
  const { id: audience, keys, clock = systemClock, ids = uuidV4 } = options
  const { may = () => true, maxGrantMs = 24 * HOUR_MS, revoked, skewMs } = options
  const own = { keys: [toVerifyKey(keys.approvals.jwk)], alg: keys.approvals.alg, may }
  const issuers = {
    ...options.issuers,
    [RUNTIME]: own,
    [RUNTIME_GRANTS]: { ...own, maxTtlMs: maxGrantMs },
  }
  const signer = { audience, key: keys.approvals, clock, ids }
  return {
    async signApproval(request, { by, ttlMs = HOUR_MS }) {
      checkRequest(request, by, clock)
      return approve(request, { ...signer, issuer: RUNTIME, approver: by, ttlMs })
    },
    async signToolGrant({ threadId, tool, risk = 'write_high_risk', by, expiresAt, grantId }) {
      const ttlMs = expiresAt - clock.now()
      if (!(ttlMs > 0 && ttlMs <= maxGrantMs))
        throw new RuntimeError(`A grant of "${tool}" cannot end at that time.`, {
          code: 'ANSWER_INVALID',
          hint: `It has to end within the next ${maxGrantMs / HOUR_MS} hours.`,
        })
      const scope = { tool, risk, [THREAD_MEMBER]: threadId } as const
      const own = { issuer: RUNTIME_GRANTS, approver: by, ttlMs, ids: () => grantId ?? ids() }
      return {
        threadId,
        tool,
        risk,
        by,
        expiresAt,
        grant: await signGrant(scope, { ...signer, ...own }),
      }
    },
    approvals: (spent) =>
      approvals({
        audience,
        issuers,
        spent,
        clock,
        revoked,
        skewMs,
      }),
  }
}

/**
 * Throws if this person may not approve, or if the request has expired. The governor checks both again; the
 * check here lets the person see the error at once.
 */
function checkRequest(request: ApprovalRequest, by: string, clock: Clock): void {
  const { action, excluded, expires_at } = request
  if (by === action.identity.agent_id || excluded.includes(by)) {
    throw new RuntimeError(`"${by}" may not approve this call of "${action.tool}".`, {
      code: 'ANSWER_INVALID',
      hint: 'Nobody may approve their own action. Let somebody else decide.',
    })
  }
  if (Date.parse(expires_at) > clock.now()) return
  throw new RuntimeError(`The question about "${action.tool}" was open until ${expires_at}.`, {
    code: 'REQUEST_EXPIRED',
    hint: 'A new question is asked when the agent makes the call again.',
  })
}

/** A person's signed consent to a tool in a thread. It is plain data; store it where you like. */
export interface ToolGrant {
  readonly threadId: string
  readonly tool: string
  /** The highest risk of the calls that the grant allows. Default `write_high_risk`. */
  readonly risk?: 'write_low_risk' | 'write_high_risk'
  readonly by: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  /** The signed text. Only this text is verified; the other fields are copies for people and for look-ups. */
  readonly grant: string
}

/** Options of `grantPolicy`. */
export interface GrantPolicyOptions {
  /** Returns the grant for a tool in a thread, if there is one. */
  readonly find: (place: {
    readonly threadId: string
    readonly tool: string
    readonly risk: Risk
  }) => ToolGrant | undefined | Promise<ToolGrant | undefined>
  readonly clock?: Clock
}

/**
 * Creates a policy that uses a stored grant instead of asking a person. List it beside the policy that asks
 * for review: it only affects calls with a grant, and a denial by another policy still applies.
 */
export function grantPolicy({ find, clock = systemClock }: GrantPolicyOptions): Policy {
  const id = 'tool-grants'
  return Object.freeze<Policy>({
    id,
    hash: hashJson({ id, version: 1 }),
    async decide({ identity, risk, tool }) {
      const threadId = identity[THREAD_MEMBER]
      if (risk === 'read_only' || typeof threadId !== 'string') return undefined
      const found = await find({ threadId, tool, risk })
      if (!found || found.expiresAt <= clock.now()) return undefined
      return { effect: 'review', grant: found.grant }
    },
  })
}

/**
 * Lets the first of these policies that is not in shadow mode (where decisions are only recorded) also read
 * the grants of the thread. Its hash does not change, so that a grant makes no approval invalid that was
 * given or is being asked for.
 */
export function withGrants(
  policies: readonly Policy[],
  options: GrantPolicyOptions,
): readonly Policy[] {
  const grants = grantPolicy(options)
  const place = policies.findIndex(({ mode }) => mode !== 'shadow')
  const first = policies[place]
  if (!first) return [...policies, grants]
  const decide: Policy['decide'] = async (action) => {
    const said = await first.decide(action)
    if (said?.effect === 'deny' || said?.grant !== undefined) return said
    const granted = await grants.decide(action)
    if (!granted || said === undefined) return granted ?? said
    return { ...said, grant: granted.grant }
  }
  const { id, hash, mode } = first
  return policies.with(place, Object.freeze({ id, hash, mode, decide }))
}

/** A grant that was made or revoked. */
export interface GrantChange {
  readonly head: Pick<ThreadHead, 'id' | 'rootId' | 'tenant'>
  readonly agent: string
  readonly by: string
  readonly grant: Pick<GrantMade, 'grantId' | 'tool' | 'risk' | 'expiresAt'>
  readonly done: 'made' | 'revoked'
}

/**
 * Finds the grant for a call: of those that are not revoked and cover its risk, the one that ends last. A
 * revoked grant is recognised by the id in its signed text, so that the same text cannot be used under
 * another id.
 */
export function usableGrant(
  grants: KernelState['grants'] = new Map(),
  { threadId, tool, risk }: Parameters<GrantPolicyOptions['find']>[0],
): ToolGrant | undefined {
  const all = [...grants.values()]
  const revoked = new Set(all.flatMap((one) => (one.revoked ? [one.revoked.grantId] : [])))
  const usable = all.flatMap(({ made }): readonly ToolGrant[] => {
    const isWide = made.risk === 'write_high_risk' || made.risk === risk
    if (made.tool !== tool || !isWide) return []
    if (revoked.has(made.grantId) || revoked.has(signedId(made.grant))) return []
    return [{ ...made, threadId, expiresAt: Date.parse(made.expiresAt) }]
  })
  return usable.toSorted((a, b) => b.expiresAt - a.expiresAt)[0]
}

/** Reads the id in a signed text, without a check of its signature; empty if there is none. */
function signedId(text: string): string {
  try {
    const payload: unknown = JSON.parse(utf8.decode(decodeBase64Url(text.split('.')[1] ?? '')))
    return isPlainObject(payload) ? String(payload['jti'] ?? '') : ''
  } catch {
    return '' // not a signed text; the governor refuses it
  }
}

const utf8 = new TextDecoder()

const GRANTING = defineTaskClass({ name: 'standing grant', tools: [], needs: [], verifiers: [] })

/**
 * Writes a grant or its revocation to the audit log, as a request whose identity names the person and the
 * grant.
 */
export async function recordGrant(
  { id, clock, ids, store }: Pick<SessionGovernorsOptions, 'id' | 'clock' | 'ids' | 'store'>,
  { head, agent, by, grant: { grantId, tool, risk, expiresAt }, done }: GrantChange,
): Promise<Pick<GovernanceWrites, 'audit' | 'blobs'>> {
  const requestId = sessionRequestId({ threadId: head.id, sessionId: `grant ${done} ${grantId}` })
  const journal = new SessionJournal({ store, tree: head.rootId, requestId, flush: undefined })
  const facts = { grant: grantId, tool, risk, expires_at: expiresAt, done }
  const identity = {
    agent_id: agent,
    owner_id: head.tenant || 'default',
    user_id: by,
    control_class: 'human-supervised',
    [THREAD_MEMBER]: head.id,
    'skein:grant': facts,
  } as const
  const governs = governor({ id, clock, ids, audit: journal, payloads: journal, tasks: [GRANTING] })
  const init = { identity, input: facts, request_id: requestId }
  const { state } = await governs.run(GRANTING, init, async () => facts)
  if (state !== 'deliver') throw new Error(`The grant ${grantId} could not be recorded: ${state}.`)
  const { audit, blobs } = journal.take()
  return { audit, blobs }
}
