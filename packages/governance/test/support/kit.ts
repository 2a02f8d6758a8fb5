import { randomIds, seededRandom, type JsonObject, type JsonValue } from '@skein/base'
import { approvals, approve, generateKey, memorySpent } from '../../src/approvals/index.ts'
import { memoryLog } from '../../src/audit/index.ts'
import {
  defineTaskClass,
  governed,
  governor,
  memoryPayloads,
  standardPolicy,
  type ApprovalAnswer,
  type ApprovalRequest,
  type AuditLog,
  type Envelope,
  type Governance,
  type GovernedContext,
  type GovernedTool,
  type Governor,
  type GovernorOptions,
  type Identity,
  type Init,
  type PayloadStore,
  type Result,
  type TaskClass,
} from '../../src/index.ts'
import { assertive } from './assertive.ts'
import { manualTime, type TestTime } from './manual-timer.ts'
import { assertValid } from './normative.ts'

export const identity: Identity = {
  agent_id: 'agent-1',
  owner_id: 'bank',
  user_id: 'uma',
  control_class: 'human-supervised',
}

export const init: Pick<Init, 'identity' | 'input'> = { identity, input: { wire: 'W-1' } }

/** A world the tools of a test change, and a record of what they did. */
export class World {
  readonly done: string[] = []

  count(name: string): number {
    return this.done.filter((one) => one.split(' ')[0] === name).length
  }
}

type Make = Partial<Governance<JsonObject, JsonValue>> & {
  readonly run?: (args: JsonObject, context: GovernedContext) => unknown
}

/** A tool that notes that it ran. `risk` is read_only unless said otherwise. */
export function toolOf(
  world: World,
  name: string,
  make: Make = {},
): GovernedTool<JsonObject, JsonValue> {
  const { run, ...governance } = make
  return governed(
    {
      name,
      description: name,
      parameters: { type: 'object' },
      run: async (args: JsonObject, context: GovernedContext): Promise<JsonValue> => {
        const result = run ? await run(args, context) : { ok: true }
        world.done.push(`${name} ${JSON.stringify(args)}`)
        return result as JsonValue
      },
    },
    { risk: 'read_only', ...governance },
  )
}

/** Rolls back by calling `undo_<name>` with the same arguments. */
export function undoBy(name: string) {
  return (args: JsonObject): { type: string; target: string; payload: JsonObject } => ({
    type: 'tool_call',
    target: `undo_${name}`,
    payload: args,
  })
}

export function taskOf(changes: Partial<TaskClass> & Pick<TaskClass, 'tools'>): TaskClass {
  return defineTaskClass({ name: 'task', needs: [], verifiers: [], ...changes })
}

export interface Kit {
  readonly governor: Governor
  readonly log: AuditLog
  readonly payloads: PayloadStore
  readonly time: TestTime
  readonly world: World
  readonly options: GovernorOptions
  /** Signs as a person. */
  sign(request: ApprovalRequest, approver?: string): Promise<string>
  /** An `approve` callback: a person who says yes. */
  yes(request: ApprovalRequest): Promise<ApprovalAnswer>
  /** A second process over the same log and stores. */
  restart(changes?: Partial<GovernorOptions>): Governor
  lines(): Promise<string[]>
  entries(requestId?: string): Promise<Entry[]>
}

export interface Entry {
  readonly type: string
  readonly data: Record<string, unknown>
  readonly envelope: Envelope
  readonly attempt: number
}

const keys = generateKey()

/** A governor in a world of its own: manual time, seeded ids, a log that judges every line. */
export async function kit(changes: Partial<GovernorOptions> = {}, seed = 1): Promise<Kit> {
  const { publicJwk, privateJwk } = await keys
  const time = manualTime()
  const log = judged(memoryLog())
  const payloads = memoryPayloads()
  const options: GovernorOptions = {
    id: 'governor.test',
    audit: log,
    payloads,
    policy: standardPolicy,
    clock: time,
    timer: time.timer,
    ids: randomIds({ random: seededRandom(seed) }),
    approvals: approvals({
      audience: 'governor.test',
      issuers: { bank: { keys: [publicJwk], alg: 'Ed25519', may: () => true } },
      spent: memorySpent({ clock: time }),
      clock: time,
    }),
    ...changes,
  }
  const sign = (request: ApprovalRequest, approver = 'pat'): Promise<string> =>
    approve(request, {
      audience: 'governor.test',
      issuer: 'bank',
      approver,
      key: privateJwk,
      ttlMs: 60_000,
      clock: time,
    })
  const entries = async (requestId?: string): Promise<Entry[]> => {
    const found: Entry[] = []
    for await (const { envelope } of log.read(requestId === undefined ? {} : { requestId })) {
      const { metadata = {} } = envelope
      found.push({
        type: metadata['uaicp:event'] as string,
        data: metadata['uaicp:data'] as Record<string, unknown>,
        attempt: metadata['uaicp:attempt'] as number,
        envelope,
      })
    }
    return found
  }
  return {
    governor: assertive(governor(options)),
    log,
    payloads,
    time,
    world: new World(),
    options,
    sign,
    yes: async (request) => ({ type: 'approve', tokens: [await sign(request)] }),
    restart: (more = {}) => assertive(governor({ ...options, ...more })),
    entries,
    lines: async () => (await entries()).map(({ envelope }) => JSON.stringify(envelope)),
  }
}

/** Every line that any test writes is judged by Ajv on the normative schema. */
export function judged(log: AuditLog): AuditLog {
  return {
    append: (entry, options) => {
      assertValid('envelope', JSON.parse(entry.line))
      return log.append(entry, options)
    },
    read: (options) => log.read(options),
    seal: () => log.seal(),
    prove: (index, size) => log.prove(index, size),
    consistency: (from, to) => log.consistency(from, to),
  }
}

/** Judges what a result holds, and gives it back. */
export function judgedResult<T>(result: Result<T>): Result<T> {
  if (result.state !== 'deliver') return result
  for (const evidence of result.evidence) assertValid('evidence', evidence)
  for (const report of result.reports) assertValid('report', report)
  return result
}

export function codesOf(result: Result<unknown>): string[] {
  return result.state === 'fail_safe' ? result.reasons.map(({ code }) => code) : []
}
