import {
  defineEffect,
  type EffectDefinition,
  type RuntimeEvent,
  type StoredEvent,
} from '@skein/runtime'
import { z } from 'zod'
import { KernelFold } from '../../src/state/fold.ts'
import type { KernelState } from '../../src/state/kernel-state.ts'
import type { Lane } from '../../src/testing/simulation.ts'
import type { Finished } from './invariants/finished.ts'
import { Grants } from './laws-grants.ts'
import { actOutside, TOOL_LIMIT_MS } from './simulated-acts.ts'
import type { World } from './world.ts'

/** The effects below: one that must not happen twice although it is tried again, one that may, one that a person has to approve. */
export const EFFECTS = ['bill', 'sync', 'charge'] as const

/** Chooses an effect by a number, so that no chance is used up: the seeds stay the runs that they were. */
export function effectFor(number: number): string {
  return ['tick', ...EFFECTS][number % (EFFECTS.length + 1)] ?? 'tick'
}

/** The high-risk tools and effects of a run. */
const RISKY: ReadonlySet<string> = new Set(['pay', 'charge'])

/** Effects that write in the ledger, with a turn before and one after, so that a crash may fall between. */
export function simulatedEffects(world: World, lane: Lane): readonly EffectDefinition[] {
  const { bugs, plan, time } = world
  const args = z.looseObject({ ref: z.string() })
  const options = {
    bill: { retry: { attempts: 3, backoffMs: time.scaled(1_000) } },
    sync: { idempotent: true },
    charge: { risk: 'write_high_risk' },
  } as const
  return EFFECTS.map((name) =>
    defineEffect({
      name,
      ...options[name],
      timeoutMs: plan.hasSlowCalls ? time.scaled(TOOL_LIMIT_MS) : undefined,
      ...(bugs.has('repeatable effects') && { idempotent: true }),
      args,
      async execute({ threadId }, given, { effectId: callId, signal }) {
        const { ref } = given
        await actOutside(world, lane, { tool: name, threadId, callId, ref, args: given }, signal)
      },
    }),
  )
}

/**
 * What is true of effects after every run. That `bill` and `charge` happen once at most is counted in the
 * ledger, as for tools.
 */
export function effectsKeepTheirWord({ world, threads }: Finished): void {
  for (const { head, log } of threads.values())
    for (const fault of effectFaults(log, (name, ref) => world.ledger.has(name, ref)))
      world.violate(`${head.id}: ${fault}`)
}

/** Finds what a log says about effects and high-risk calls that may not be. */
export function effectFaults(
  log: readonly StoredEvent[],
  hasHappened: (name: string, ref: string) => boolean,
): string[] {
  const faults: string[] = []
  const fold = new KernelFold()
  const approved = new Set<string>()
  const grants = new Grants()
  /** The effect whose failure must let messages go first; undefined when there is none. */
  let mailFirst: string | undefined
  for (const stored of log) {
    const { event } = stored
    const { state } = fold
    if (event.type === 'interrupt_answered' && event.answer.type === 'approve') {
      const waiting = state.interrupts.get(event.interruptId)?.interrupt.toolCallId
      if (waiting !== undefined) approved.add(waiting)
    }
    const started = startedBy(state, event)
    grants.see(event)
    const isGranted = started !== undefined && grants.cover(started.name, event.at)
    if (started && RISKY.has(started.name) && !approved.delete(started.id) && !isGranted)
      faults.push(`${started.name} (${started.id}) was started without an approval of its own`)
    if (event.type === 'effect_started' && mailFirst !== undefined)
      faults.push(`${event.effectId} ran before a message, although ${mailFirst} had failed`)
    if (event.type === 'effect_ended') {
      const { name = '', args } = state.effects.get(event.effectId)?.scheduled ?? {}
      const { ref = '' } = (args ?? {}) as { readonly ref?: string }
      const isOurs = EFFECTS.some((one) => one === name)
      if (event.outcome === 'done' && isOurs && !hasHappened(name, ref))
        faults.push(`${name} ${ref} is done, and never happened`)
    }
    fold.push(stored)
    if (!hasMail(state)) mailFirst = undefined
    else if (event.type === 'effect_ended' && hasFailed(event)) mailFirst = event.effectId
  }
  return faults
}

function startedBy(
  { effects }: KernelState,
  event: RuntimeEvent,
): { readonly name: string; readonly id: string } | undefined {
  if (event.type === 'tool_execution_start') return { name: event.toolName, id: event.toolCallId }
  if (event.type !== 'effect_started') return undefined
  const { effectId: id } = event
  return { name: effects.get(id)?.scheduled.name ?? '', id }
}

function hasFailed({ outcome }: Extract<RuntimeEvent, { type: 'effect_ended' }>): boolean {
  return outcome === 'failed' || outcome === 'unknown'
}

/** Whether a message waits that the thread could take now: nothing else runs, and nobody stopped it. */
function hasMail({ queue, session, stop, terminated, isErased, children }: KernelState): boolean {
  const isHeldUp = [...children.values()].some(
    ({ created, lifecycle }) =>
      created.isImmediate && (lifecycle === 'running' || lifecycle === 'awaiting_human'),
  )
  return queue.length > 0 && !session && stop === 'none' && !terminated && !isErased && !isHeldUp
}
