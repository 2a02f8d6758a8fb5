import { asTold } from '../children/tell-parent.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { KernelEnvironment } from '../context/environment.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { KernelState } from '../state/kernel-state.ts'

/** Why a thread cannot continue in this process. The waiting thread shows `text` as its status. */
interface Missing {
  readonly code: 'AGENT_NOT_FOUND' | 'AGENT_CHANGED'
  readonly text: string
  readonly hint: string
}

/**
 * Returns what a thread needs and this process lacks: its agent or, with `pin: 'session'`, the
 * definitions with which its session began. Returns undefined if the thread can continue here.
 */
export function missingHere(
  { agent, session }: Pick<KernelState, 'agent' | 'session'>,
  { registry, pin }: Pick<KernelEnvironment, 'registry' | 'pin'>,
): Missing | undefined {
  const found = registry.agents.get(agent)
  if (!found) {
    const names = [...registry.agents.keys()].join(', ') || 'none'
    const hint = `The thread continues when a process has this agent. Agents here: ${names}.`
    return { code: 'AGENT_NOT_FOUND', text: missingText(agent), hint }
  }
  const { definitions } = session ?? {}
  if (pin !== 'session' || definitions === undefined || definitions === found.hash) return undefined
  const hint = `The session continues when a process has them (here: ${found.hash.slice(0, 8)}). To continue with the definitions here, stop the thread and resume it.`
  return { code: 'AGENT_CHANGED', text: changedText(agent, definitions), hint }
}

/** Whether the thread waits because the last process lacked its agent, or its version of the agent. */
export function waitsForAgent({ status, statusText, agent, session }: KernelState): boolean {
  if (status !== 'waiting') return false
  const { definitions = '' } = session ?? {}
  return statusText === missingText(agent) || statusText === changedText(agent, definitions)
}

function missingText(agent: string): string {
  return `Waits for the agent "${agent}", which is not defined here.`
}

function changedText(agent: string, definitions: string): string {
  return `Waits for the definitions ${definitions.slice(0, 8)} of the agent "${agent}", with which its session began.`
}

/**
 * Writes, once, that the thread waits for its agent, and gives its lease back. The thread stays due, so
 * that a process that has the agent continues it at once.
 */
export async function awaitAgent(context: DrainContext, missing: Missing): Promise<void> {
  const { state, environment } = context
  const at = context.at()
  const { code, text, hint } = missing
  const events: RuntimeEvent[] = [
    { type: 'error_raised', at, code, message: text, hint },
    { type: 'status_changed', at, status: 'waiting', text, ...asTold(state) },
  ]
  await context.commit('await_agent', {
    events: state.statusText === text ? [] : events,
    head: { lifecycle: 'waiting' },
    wake: { by: environment.clock.now() },
    releases: true,
  })
}
