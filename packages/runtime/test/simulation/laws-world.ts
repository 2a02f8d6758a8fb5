import { canonicalJson, type JsonValue } from '@skein/base'
import type { Commit, RuntimeEvent, Store } from '@skein/runtime'
import type { Finished } from './invariants/finished.ts'
import { spoiling } from './laws-order.ts'
import type { Deed } from './ledger.ts'
import type { PlantParts } from './plants.ts'

/** What an effect on the world may do, by the name of its tool. */
export interface Effect {
  /** It is declared idempotent, so it may happen again. */
  readonly mayRepeat?: true
  /** It undoes calls of this tool. The runtime runs it by itself, so no call in the log starts it. */
  readonly undoes?: string
}

/** The tools and effects of the simulation that write in the ledger. */
const EFFECTS: Readonly<Record<string, Effect>> = {
  put: { mayRepeat: true },
  send: {},
  ship: {},
  pay: {},
  refund: { mayRepeat: true, undoes: 'pay' },
  bill: {},
  sync: { mayRepeat: true },
  charge: {},
}

/** What the log of a thread says of one call, or of one scheduled effect. */
interface Account {
  readonly id: string
  readonly tool: string
  readonly ref: string
  /** The arguments with which it was started, as canonical JSON; none if the log does not show them. */
  readonly starts: (string | undefined)[]
  /** How it ended; undefined while it has not. */
  readonly says: Says | undefined
  /** Whether it says so with a result that came later, or with what a person or a probe found. */
  readonly isFound: boolean
}

/** `not_run`: it did not happen. `done`: it happened. `unknown`: nobody knows. `failed`: it ran, and failed. */
export type Says = 'not_run' | 'done' | 'unknown' | 'failed'

/**
 * The law: what the log says of an effect is never contradicted by the world. Returns what a log says wrongly of what
 * the ledger has of its thread, in the order in which it happened.
 */
export function* contradictions(
  events: readonly RuntimeEvent[],
  deeds: readonly Deed[],
  effects: Readonly<Record<string, Effect>>,
): Generator<string> {
  const accounts = accountsOf(events, effects)
  for (const { id, tool, ref, starts, says } of accounts.values()) {
    const done = deeds.filter(({ callId }) => callId === id)
    const what = `${tool} ${ref} (${id})`
    const times = done.length
    if (says === 'not_run' && times > 0) yield `${what} was not run, says the log; it happened`
    if (says === 'done' && times === 0) yield `${what} is done, says the log; it never happened`
    if (times > 1 && !effects[tool]?.mayRepeat) yield `${what} happened ${times} times`
    if (times > 0 && starts.length === 0) yield `${what} happened, and was never started`
    const expected = starts.filter((args) => args !== undefined)
    for (const { args } of done)
      if (expected.length > 0 && !expected.includes(args))
        yield `${what} ran with ${args}, and the log says ${expected.join(' and ')}`
  }
  for (const { tool, callId, ref } of deeds)
    if (!accounts.has(callId) && effects[tool]?.undoes === undefined)
      yield `${tool} ${ref} (${callId}) happened, and the log has no such call`
  yield* startedAgain(events, effects)
}

/**
 * An undo comes after what it undoes, which happened and is known to have happened: it says so in the log, or somebody
 * has found it out. All threads of a tree are looked at together, because a parent undoes what its children did.
 */
export function* wrongUndos(
  logs: readonly (readonly RuntimeEvent[])[],
  deeds: readonly Deed[],
  effects: Readonly<Record<string, Effect>>,
): Generator<string> {
  const accounts = logs.flatMap((events) => [...accountsOf(events, effects).values()])
  const found = new Set(logs.flatMap(foundApplied))
  for (const [place, { tool, ref }] of deeds.entries()) {
    const undone = effects[tool]?.undoes
    if (undone === undefined) continue
    const isOf = (one: { readonly tool: string; readonly ref: string }): boolean =>
      one.tool === undone && one.ref === ref
    const write = deeds.findIndex(isOf)
    if (write < 0) yield `${tool} ${ref} undoes ${undone}, which never happened`
    else if (write > place) yield `${tool} ${ref} came before the ${undone} that it undoes`
    const account = accounts.findLast(isOf)
    if (account?.says === 'unknown' && !found.has(`${undone} ${ref}`))
      yield `${tool} ${ref} undoes ${undone}, of which nobody knows whether it happened`
  }
}

/** The calls in doubt, as `tool ref`, of which a person has found that they took effect, e.g. when their undoing was due. */
function foundApplied(events: readonly RuntimeEvent[]): string[] {
  const asked = new Map<string, string>()
  return events.flatMap((event) => {
    if (event.type === 'interrupt_opened' && event.interrupt.kind === 'in_doubt') {
      const { tool, arguments: args } = event.interrupt.request as {
        readonly tool: string
        readonly arguments: { readonly ref?: unknown }
      }
      asked.set(event.interrupt.id, `${tool} ${String(args.ref)}`)
    }
    if (event.type !== 'interrupt_answered' || event.answer.type !== 'result') return []
    return event.answer.value === 'applied' ? (asked.get(event.interruptId) ?? []) : []
  })
}

/** After a stop, a cut or the end of its thread, a call that had started is not started again. */
function* startedAgain(
  events: readonly RuntimeEvent[],
  effects: Readonly<Record<string, Effect>>,
): Generator<string> {
  const started = new Set<string>()
  let halted = new Set<string>()
  for (const event of events) {
    if (event.type === 'tool_execution_start' && effects[event.toolName]) {
      if (halted.has(event.toolCallId))
        yield `${event.toolName} (${event.toolCallId}) was started again after a stop`
      started.add(event.toolCallId)
    }
    if (event.type === 'tool_execution_end') started.delete(event.toolCallId)
    if (event.type === 'stop_requested' && !event.afterStep) halted = new Set(started)
    if (event.type === 'turn_cut' || event.type === 'thread_terminated') halted = new Set(started)
    if (event.type === 'resume_requested') halted = new Set()
  }
}

/** Reads from a log what it says of every call and every scheduled effect that may write in the ledger. */
export function accountsOf(
  events: readonly RuntimeEvent[],
  effects: Readonly<Record<string, Effect>>,
): ReadonlyMap<string, Account> {
  const accounts = new Map<string, { -readonly [Key in keyof Account]: Account[Key] }>()
  const asked = new Map<string, string>()
  const begin = (id: string, tool: string, args: unknown): void => {
    if (!effects[tool]) return
    const ref = String((args as { readonly ref?: unknown } | undefined)?.ref ?? '')
    accounts.set(id, { id, tool, ref, starts: [], says: undefined, isFound: false })
  }
  for (const event of events)
    switch (event.type) {
      case 'message_added': {
        const { message } = event
        for (const { toolCallId, toolName, arguments: args } of message.type === 'assistant'
          ? (message.toolCalls ?? [])
          : [])
          begin(toolCallId, toolName, args)
        break
      }
      case 'tool_execution_start': {
        const args = canonicalJson(event.arguments as JsonValue)
        const account = accounts.get(event.toolCallId)
        account?.starts.push(args)
        if (account) account.ref = String((event.arguments as { ref?: unknown }).ref ?? '')
        break
      }
      case 'tool_execution_end': {
        const account = accounts.get(event.toolCallId)
        const mayRepeat = effects[event.toolName]?.mayRepeat === true
        if (account) account.says = saidBy(event, account.starts.length > 0, mayRepeat)
        break
      }
      case 'effect_scheduled':
        begin(event.effectId, event.name, event.args)
        break
      case 'effect_started':
        accounts.get(event.effectId)?.starts.push(undefined)
        break
      case 'effect_ended': {
        const account = accounts.get(event.effectId)
        if (!account || event.isRetry) break
        const { outcome } = event
        if (outcome === 'removed') account.says = account.starts.length > 0 ? 'unknown' : 'not_run'
        else account.says = outcome
        break
      }
      case 'late_result': {
        // Of an effect, `toolCallId` names the attempt: its id, its run and its number.
        const id = event.effectId ?? event.toolCallId.replace(/:\d+\.\d+$/, '')
        const account = accounts.get(id)
        if (!account) break
        account.says = event.outcome === 'success' ? 'done' : 'failed'
        account.isFound = true
        break
      }
      case 'interrupt_opened':
        if (event.interrupt.kind === 'in_doubt')
          asked.set(event.interrupt.id, event.interrupt.toolCallId)
        break
      case 'interrupt_answered': {
        const account = accounts.get(asked.get(event.interruptId) ?? '')
        const { answer } = event
        if (!account || answer.type !== 'result' || account.says !== 'unknown') break
        if (answer.value === 'applied') account.says = 'done'
        if (answer.value === 'absent') account.says = 'not_run'
        account.isFound = true
        break
      }
      case 'call_changed': // a person has approved the call with other arguments: they are in its start
        begin(event.changedTo, accounts.get(event.toolCallId)?.tool ?? '', {})
        break
      default:
    }
  return accounts
}

function saidBy(
  { outcome, result }: Extract<RuntimeEvent, { type: 'tool_execution_end' }>,
  hasStarted: boolean,
  mayRepeat: boolean,
): Says {
  switch (outcome) {
    case 'success':
      return 'done'
    case 'denied':
      return 'not_run'
    case 'interrupted':
      // What may be repeated is cut off without a word about its effect.
      return hasStarted && mayRepeat ? 'failed' : 'not_run'
    case 'unknown':
      return 'unknown'
    default:
      // A tool that blocked its process is too late, and has run to its end.
      if (String(result).includes('has run to its end')) return 'done'
      return hasStarted ? 'failed' : 'not_run'
  }
}

/** What must be true of all effects of a run, whatever befell it. */
export function worldLaws({ world, threads }: Finished): void {
  const { deeds } = world.ledger
  for (const { head, events } of threads.values()) {
    const own = deeds.filter(({ threadId }) => threadId === head.id)
    for (const fault of contradictions(events, own, EFFECTS)) {
      // A probe says "absent" while a runtime that was given up has yet to act: nobody can know.
      if (world.plan.hasZombies && /^ship .* happened \d+ times$/.test(fault)) continue
      world.violate(`${head.id} (${head.agent}): ${fault}`)
    }
  }
  const logs = [...threads.values()].map(({ events }) => events)
  for (const fault of wrongUndos(logs, deeds, EFFECTS)) world.violate(fault)
  // What a process that lives knows of a call is in the log.
  for (const { threadId, callId, tool, ref } of world.ledger.returned()) {
    const { head, events } = threads.get(threadId) ?? {}
    const says = events && accountsOf(events, EFFECTS).get(callId)?.says
    // Of what may be repeated, nobody has to know how it ended.
    if (EFFECTS[tool]?.mayRepeat) continue
    if (says !== undefined && says !== 'done')
      world.violate(
        `${threadId} (${head?.agent}): ${tool} ${ref} (${callId}) has returned, and the log says ${says}`,
      )
  }
}

type WorldPlant = {
  readonly plant: (store: Store, parts: Pick<PlantParts, 'spoilTools'>) => Store
  /** What is said of it. */
  readonly finds: RegExp
}

/** Planted bugs against these laws, and what the law says of them. */
export const worldBugs: Readonly<Record<string, WorldPlant>> = {
  /** A time limit or a stop counts as "did not happen". */
  'unknown-means-no': {
    finds: /was not run, says the log; it happened/,
    plant: (store) =>
      spoiling(store, (commit) => {
        for (const event of endsIn(commit))
          if (event.outcome === 'unknown') Object.assign(event, { outcome: 'interrupted' })
      }),
  },

  /** The result of a call that ended in the grace after a stop is thrown away. */
  'dropped-result': {
    finds: /was not run, says the log; it happened|has returned, and the log says/,
    plant: (store) => {
      const stopping = new Set<string>()
      return spoiling(store, (commit) => {
        for (const { id, append = [] } of commit.threads)
          for (const { type } of append) {
            if (type === 'stop_requested') stopping.add(id)
            if (type === 'session_start') stopping.delete(id)
          }
        if (!stopping.has(commit.threads[0]?.id ?? '')) return
        for (const event of endsIn(commit))
          if (event.outcome === 'success')
            Object.assign(event, { outcome: 'interrupted', result: 'The user stopped the run.' })
      })
    },
  },

  /** A result that comes when its call counts as unknown is not written. */
  'dropped-late-result': {
    finds: /has returned, and the log says unknown/,
    plant: (store) =>
      spoiling(store, ({ threads }) => {
        for (const change of threads)
          Object.assign(change, {
            append: change.append?.filter(({ type }) => type !== 'late_result'),
          })
      }),
  },

  /** What is undone has not happened yet, because its call counts as over when it is asked to stop. */
  'early-undo': {
    finds: /which never happened|came before the pay that it undoes/,
    plant: (store, { spoilTools }) => {
      spoilTools('done when stopped')
      return store
    },
  },

  /** What was stopped counts as done, although it was not. */
  'done-when-stopped': {
    finds: /is done, says the log; it never happened/,
    plant: (store, { spoilTools }) => {
      spoilTools('done when stopped')
      return store
    },
  },

  /** A call runs a second time after a stop. */
  'second-run': {
    finds: /happened 2 times/,
    plant: (store, { spoilTools }) => {
      spoilTools('again after a stop')
      return store
    },
  },

  /** The start of a call that was stopped is written once more. */
  'second-start': {
    finds: /was started again after a stop/,
    plant: (store) => {
      const started = new Map<string, RuntimeEvent>()
      return spoiling(store, ({ threads: [own] }) => {
        for (const event of own?.append ?? []) {
          if (event.type === 'tool_execution_start') started.set(own!.id, event)
          const again = started.get(own!.id)
          if (event.type !== 'stop_requested' || event.afterStep || !again) continue
          Object.assign(own!, { append: [...own!.append!, again] })
          return
        }
      })
    },
  },

  /** A call runs without its start in the log. */
  'forgotten-start': {
    finds: /happened, and was never started/,
    plant: (store) =>
      spoiling(store, ({ threads }) => {
        for (const change of threads)
          Object.assign(change, {
            append: change.append?.filter(
              (event) => event.type !== 'tool_execution_start' || !EFFECTS[event.toolName],
            ),
          })
      }),
  },

  /** Arguments are parsed again after the gate. */
  'parsed-again': {
    finds: /ran with .*, and the log says/,
    plant: (store, { spoilTools }) => {
      spoilTools('parsed again')
      return store
    },
  },
}

/** The same as plants; see `plants.ts`. */
export const worldPlants: Readonly<Record<string, WorldPlant['plant']>> = Object.fromEntries(
  Object.entries(worldBugs).map(([name, { plant }]) => [name, plant]),
)

function endsIn({
  threads: [own],
}: Commit): Extract<RuntimeEvent, { type: 'tool_execution_end' }>[] {
  return (own?.append ?? []).filter(
    (event) => event.type === 'tool_execution_end' && EFFECTS[event.toolName] !== undefined,
  ) as Extract<RuntimeEvent, { type: 'tool_execution_end' }>[]
}
