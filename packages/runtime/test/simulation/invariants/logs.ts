import type { KernelState } from '../../../src/state/kernel-state.ts'
import { next } from '../../../src/loop/next.ts'
import type { Finished } from './finished.ts'

/** Numbers of a log have no gap, and the head agrees with it. */
export function numbersAreWhole({ world, threads }: Finished): void {
  for (const { head, log } of threads.values()) {
    if (head.seq !== log.length)
      world.violate(`${head.id} has ${log.length} events, not ${head.seq}`)
    log.forEach(({ seq }, index) => {
      if (seq !== index + 1) world.violate(`${head.id}: event ${index + 1} has the number ${seq}`)
    })
  }
}

/** Whatever can be done has been done, and what waits for a time is woken then. */
export function nothingIsLeft({ world, threads, registry }: Finished): void {
  const now = world.clock.now()
  for (const { head, state } of threads.values()) {
    const agent = registry.agent(state.agent)
    const action = next(state, { agent, epoch: head.epoch, now, limits })
    if (action.type !== 'park')
      world.violate(`${head.id} (${head.agent}) was left with work: ${action.type}`)
    else if (action.wakeAt !== null && (head.wakeAt === null || head.wakeAt > action.wakeAt))
      world.violate(`${head.id} is not woken at ${action.wakeAt} but at ${head.wakeAt}`)
    if (state.session)
      world.violate(
        `${head.id} (${head.agent}) has an open session: ${JSON.stringify([...state.interrupts.values()])}`,
      )
  }
}

const limits = {
  modelAttempts: 4,
  modelBackoffMs: 1_000,
  modelIdleMs: 600_000,
  modelMs: 3_600_000,
  leaseMs: 1,
  drainAttempts: 4,
  depth: 8,
  sameErrors: 8,
  maxSteps: 250,
  maxHandoffs: 10,
  hookTimeoutMs: 5_000,
  maxFileBytes: 1,
  maxImageBytes: 1000,
  maxMediaBytes: 1000,
  maxMediaFiles: 20,
  maxMessageBytes: 1,
  maxToolCalls: 128,
  maxToolResultBytes: 256 * 1024,
  stopGraceMs: 100,
  interruptTtlMs: 1,
  variablesTtlMs: 1,
  loopBlockedMs: Infinity,
}

/** A terminated thread takes nothing, and all below it are terminated with it. */
export function terminationIsFinal({ world, threads }: Finished): void {
  for (const { head, events, state } of threads.values()) {
    const end = events.findIndex(({ type }) => type === 'thread_terminated')
    if (end < 0) continue
    if (head.lifecycle !== 'terminated')
      world.violate(`${head.id} was terminated and is ${head.lifecycle}`)
    for (const event of events.slice(end + 1))
      if (
        [
          'message_added',
          'turn_start',
          'step_start',
          'tool_execution_start',
          'subagent_created',
        ].includes(event.type)
      )
        world.violate(`${head.id} took ${event.type} after its end`)
    if (state.terminated?.isDetached) continue
    for (const child of threads.values())
      if (
        child.head.parentId === head.id &&
        child.head.lifecycle !== 'terminated' &&
        !isOver(state, child.head.id)
      )
        world.violate(`${child.head.id} outlived its parent ${head.id}`)
  }
}

function isOver({ children }: KernelState, id: string): boolean {
  const lifecycle = children.get(id)?.lifecycle
  return lifecycle === 'completed' || lifecycle === 'failed'
}
